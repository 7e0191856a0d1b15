package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// lastRefusal is the last error that may pass with which a broker refused records. The client library sends them again until time is
// up, and tells why in its log alone.
type lastRefusal struct{ last atomic.Pointer[kerr.Error] }

// retried finds the errors in what the library logs of an answer: retrying@OFFSET,COUNT(NAME: description).
var retried = regexp.MustCompile(`retrying@[-0-9,]*\(([A-Z_]+):`)

// Level is that on which answers are logged.
func (r *lastRefusal) Level() kgo.LogLevel { return kgo.LogLevelDebug }

// Log takes the error out of an answer to Produce, and prints nothing.
func (r *lastRefusal) Log(_ kgo.LogLevel, msg string, keyvals ...any) {
	if msg != "produced" {
		return
	}
	for i := 0; i+1 < len(keyvals); i += 2 {
		text, ok := keyvals[i+1].(string)
		if !ok || keyvals[i] != "to" {
			continue
		}
		if m := retried.FindStringSubmatch(text); m != nil {
			r.last.Store(byName(m[1]))
		}
	}
}

// rule names the setting of the topic, or of this command, by which a record was refused: the broker says so, and the client library does
// not pass it on. It is empty where that is not known.
func (p *producing) rule(ctx context.Context, cl *kgo.Client, topic string) string {
	large := errors.Is(p.err, kerr.MessageTooLarge)
	if !large && !errors.Is(p.err, kerr.InvalidRecord) {
		return ""
	}
	settings, err := kadm.NewClient(cl).DescribeTopicConfigs(ctx, topic)
	if err != nil || len(settings) != 1 || settings[0].Err != nil {
		return ""
	}
	of := func(name string) string {
		for _, c := range settings[0].Configs {
			if c.Key == name {
				return c.MaybeValue()
			}
		}
		return ""
	}
	if !large {
		if p.at.Key == nil && strings.Contains(of("cleanup.policy"), "compact") {
			return "the topic is compacted (cleanup.policy), and takes no record without a key; --key or --key-separator gives one"
		}
		return ""
	}
	size := len(p.at.Key) + len(p.at.Value)
	most, err := strconv.Atoi(of("max.message.bytes"))
	switch {
	case err != nil:
		return ""
	case int(p.maxBytes) <= most || size >= int(p.maxBytes):
		return fmt.Sprintf("a record of %s does not fit into --max-message-bytes, %d", count(int64(size), "byte"), p.maxBytes)
	}
	return fmt.Sprintf("a batch is larger than the topic's max.message.bytes, %d; --max-message-bytes makes batches smaller, "+
		"kring topics alter --config changes the topic's", most)
}

// byName finds one of Kafka's errors.
func byName(name string) *kerr.Error {
	for code := int16(1); code < 1000; code++ {
		if e := kerr.TypedErrorForCode(code); e != nil && e.Message == name {
			return e
		}
	}
	return nil
}

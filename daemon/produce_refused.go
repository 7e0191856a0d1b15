package main

import (
	"regexp"
	"sync/atomic"

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

// byName finds one of Kafka's errors.
func byName(name string) *kerr.Error {
	for code := int16(1); code < 1000; code++ {
		if e := kerr.TypedErrorForCode(code); e != nil && e.Message == name {
			return e
		}
	}
	return nil
}

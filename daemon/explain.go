package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// ownWords say what some of Kafka's errors mean to who typed the command, where the broker sent no words of its own.
var ownWords = map[*kerr.Error]string{
	kerr.UnknownTopicOrPartition: "there is no such topic; kring topics list shows those there are",
	kerr.GroupIDNotFound:         "there is no such group; kring groups list shows those there are",
	kerr.NonEmptyGroup:           "the group has members; stop them first",
	kerr.CoordinatorNotAvailable: "the topic of group offsets is being made, or cannot be read: then the broker's log says why",
	kerr.RecordListTooLarge:      "a batch is larger than the topic's segment.bytes; --max-message-bytes makes batches smaller",
	kerr.KafkaStorageError:       "the broker cannot write to the log dir: its disk is full or has failed; the broker's log says which",
	kerr.MessageTooLarge:         "a record does not fit --max-message-bytes, or its batch not the topic's max.message.bytes",
}

// explain names what an error is about, by Kafka's name of it and the broker's own words if there are any.
func explain(about string, err error, detail string) error {
	if about == "" {
		about = `""`
	}
	var known *kerr.Error
	if !errors.As(err, &known) {
		return fmt.Errorf("%s: %w", about, err)
	}
	return fmt.Errorf("%s: %s", about, words(known, detail))
}

// words are Kafka's name of an error and what it means: detail, ours or Kafka's own.
func words(known *kerr.Error, detail string) string {
	if detail == "" {
		detail = ownWords[known]
	}
	if detail == "" {
		detail = strings.TrimSuffix(known.Description, ".")
	}
	return known.Message + ": " + detail
}

// unshard is what the first of several brokers said, where one request was divided among them.
func unshard(err error) error {
	var several *kadm.ShardErrors
	if errors.As(err, &several) && len(several.Errs) > 0 {
		return several.Errs[0].Err
	}
	return err
}

// said is an error as the one line a refusal has. That nobody listens where a client looked is the commonest of all, and says what
// to do.
func said(err error) string {
	var op *net.OpError
	switch {
	case !errors.As(err, &op):
	case op.Op == "dial":
		return fmt.Sprintf("no broker answers at %s; --bootstrap-server says where to look", dialled(op))
	case op.Op == "read" && op.Timeout():
		return fmt.Sprintf("%v took the connection but did not answer in %s; it may be recovering logs: /health says how far", op.Addr,
			time.Duration(patient.Load()))
	}
	return oneLine(err)
}

// patient is how long the client of this process waits for an answer, a time.Duration.
var patient atomic.Int64

func dialled(op *net.OpError) string {
	var name *net.DNSError
	if errors.As(op, &name) {
		return name.Name + ": " + name.Err
	}
	cause := op.Err
	var call *os.SyscallError
	if errors.As(op.Err, &call) {
		cause = call.Err
	}
	return fmt.Sprintf("%v: %v", op.Addr, cause)
}

// checkBrokers refuses what cannot be the address of a broker; a host alone means port 9092.
func checkBrokers(brokers []string) error {
	for _, b := range brokers {
		host, port, err := net.SplitHostPort(b)
		if err != nil && b != "" && !strings.Contains(b, ":") {
			continue
		}
		if n, bad := strconv.ParseUint(port, 10, 16); err != nil || host == "" || bad != nil || n == 0 {
			return wrong("--bootstrap-server %s is not valid; allowed: host:port, separated by commas", b)
		}
	}
	if len(brokers) == 0 {
		return wrong("--bootstrap-server is empty; allowed: host:port, separated by commas")
	}
	return nil
}

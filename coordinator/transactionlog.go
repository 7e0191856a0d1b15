package coordinator

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"unicode/utf16"
)

// The versions of records of __transaction_state that are read.
const (
	transactionKeyVersion int16 = 0
	transactionValueMax   int16 = 1 // flexible
)

// transactionStates are Kafka's names of the states a transactional id may be in, by their numbers.
var transactionStates = [...]string{"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead",
	"PrepareEpochFence"}

// TransactionValue is what a record of __transaction_state says of a transactional id. Its coordinator is not built; the record is
// for being printed.
type TransactionValue struct {
	ProducerID    int64
	ProducerEpoch int16
	TimeoutMs     int32
	State         string               // of transactionStates
	Partitions    []TransactionalTopic // in the record's order; none in state Empty
	UpdateMs      int64
}

// TransactionalTopic is a topic of which a transaction has written into partitions.
type TransactionalTopic struct {
	Topic      string
	Partitions []int32
}

// DecodeTransactionKey reads a key: version 0, ErrUnknownKey for others, ErrMalformed for what is none.
func DecodeTransactionKey(b []byte) (transactionalID string, err error) {
	r := reader{rest: b}
	version := r.int16()
	if !r.bad && version != transactionKeyVersion {
		return "", fmt.Errorf("%w: %d", ErrUnknownKey, version)
	}
	id := r.string()
	if r.bad {
		return "", fmt.Errorf("%w: key of a transactional id of %d bytes", ErrMalformed, len(b))
	}
	return string(id), nil
}

// DecodeTransaction reads a value of version 0 or 1, else ErrMalformed.
func DecodeTransaction(b []byte) (TransactionValue, error) {
	r := reader{rest: b}
	version := r.int16()
	if r.bad || version < 0 || version > transactionValueMax {
		return TransactionValue{}, fmt.Errorf("%w: value of a transactional id of %d bytes, version %d", ErrMalformed, len(b), version)
	}
	r.flex = version >= 1
	v := TransactionValue{ProducerID: r.int64(), ProducerEpoch: r.int16(), TimeoutMs: r.int32()}
	state := r.take(1)
	v.Partitions = r.transactionalTopics()
	v.UpdateMs = r.int64()
	r.int64() // when it began
	r.tags()
	if r.bad || int(state[0]) >= len(transactionStates) {
		return TransactionValue{}, fmt.Errorf("%w: value of a transactional id of %d bytes, version %d", ErrMalformed, len(b), version)
	}
	if v.State = transactionStates[state[0]]; state[0] == 0 {
		v.Partitions = nil
	}
	return v, nil
}

// transactionalTopics reads an array that may be null.
func (r *reader) transactionalTopics() []TransactionalTopic {
	n := r.length(true)
	if n == -1 {
		return nil
	}
	if n < 0 || n > len(r.rest)/2 {
		r.bad, r.rest = true, nil
		return nil
	}
	var topics []TransactionalTopic
	for ; n > 0 && !r.bad; n-- {
		t := TransactionalTopic{Topic: string(r.string())}
		for count := r.array(4); count > 0; count-- {
			t.Partitions = append(t.Partitions, r.int32())
		}
		r.tags()
		topics = append(topics, t)
	}
	return topics
}

// String is the value as kafka-dump-log --transaction-log-decoder prints it.
func (v TransactionValue) String() string {
	b := fmt.Appendf(nil, "producerId:%d,producerEpoch:%d,state=%s,partitions=[", v.ProducerID, v.ProducerEpoch, v.State)
	for i, p := range v.inKafkasOrder() {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(append(b, p.topic...), '-'), int64(p.partition), 10)
	}
	return string(fmt.Appendf(b, "],txnLastUpdateTimestamp=%d,txnTimeoutMs=%d", v.UpdateMs, v.TimeoutMs))
}

type hashedPartition struct {
	topic     string
	partition int32
	hash      uint32
}

// inKafkasOrder gives the partitions once each, in the order in which Kafka's tool prints them: that of Scala's mutable.HashSet, by
// the slots of a table of a power of two that is never more than three quarters full, and within a slot by hash.
func (v TransactionValue) inKafkasOrder() []hashedPartition {
	var all []hashedPartition
	seen := map[hashedPartition]bool{}
	slots := 16
	for _, t := range v.Partitions {
		topic := javaHash(t.Topic)
		added := map[int32]bool{}
		for _, n := range t.Partitions {
			h := 31*(31+uint32(n)) + topic
			p := hashedPartition{t.Topic, n, h ^ h>>16}
			if added[n] = true; seen[p] {
				continue
			}
			seen[p] = true
			all = append(all, p)
		}
		// A topic's partitions come as a set, whose size the table is made for first; each one that is added may double it.
		slots = max(slots, 1<<bits.Len(uint((len(added)+1)*4/3-1)))
		for len(all) >= slots*3/4 {
			slots *= 2
		}
	}
	slices.SortStableFunc(all, func(a, b hashedPartition) int {
		if x, y := a.hash&uint32(slots-1), b.hash&uint32(slots-1); x != y {
			return int(x) - int(y)
		}
		return int(int32(a.hash)) - int(int32(b.hash))
	})
	return all
}

// javaHash is String.hashCode: over UTF-16.
func javaHash(s string) (h uint32) {
	for _, c := range utf16.Encode([]rune(s)) {
		h = 31*h + uint32(c)
	}
	return h
}

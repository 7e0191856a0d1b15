package metadata

import (
	"encoding/base64"
	"errors"
)

// Epochs are numbers of different things and must not be mixed up.
type (
	// BrokerEpoch is the czxid of a broker's registration.
	BrokerEpoch int64
	// ControllerEpoch counts the elections of a controller, from 1.
	ControllerEpoch int32
	// LeaderEpoch counts the changes of a partition's leadership, from 0.
	LeaderEpoch int32
	// PartitionEpoch is the data version of a partition's state node.
	PartitionEpoch int32
)

// NoLeader and NoBroker stand for "none"; broker ids are otherwise 0 and above.
const (
	NoLeader int32 = -1
	NoBroker int32 = -1
)

// TopicID is a topic's UUID (KIP-516); zero stands for none.
type TopicID [16]byte

// IsZero tells whether there is no id.
func (id TopicID) IsZero() bool { return id == TopicID{} }

// String is the form in znodes and messages: 22 characters of URL-safe base64.
func (id TopicID) String() string { return base64.RawURLEncoding.EncodeToString(id[:]) }

var errTopicID = errors.New("a topic id is 22 characters of URL-safe base64")

// ParseTopicID reads the form of String.
func ParseTopicID(s string) (TopicID, error) {
	var id TopicID
	if len(s) != 22 {
		return id, errTopicID
	}
	var b [18]byte
	if n, err := base64.RawURLEncoding.Decode(b[:], []byte(s)); err != nil || n != 16 {
		return id, errTopicID
	}
	copy(id[:], b[:16])
	return id, nil
}

// Source gives random numbers; a *rand.Rand does.
type Source interface{ Uint64() uint64 }

// NewTopicID draws a random UUID that Kafka would give: none of the two reserved ones, and no text beginning with a dash.
func NewTopicID(from Source) TopicID {
	for {
		id := randomUUID(from)
		if !id.IsZero() && id != (TopicID{15: 1}) && id.String()[0] != '-' {
			return id
		}
	}
}

// NewClusterID draws a random cluster id.
func NewClusterID(from Source) string { return TopicID(randomUUID(from)).String() }

// randomUUID is of version 4, RFC 9562.
func randomUUID(from Source) (id TopicID) {
	a, b := from.Uint64(), from.Uint64()
	for i := range 8 {
		id[i], id[8+i] = byte(a>>(56-8*i)), byte(b>>(56-8*i))
	}
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}

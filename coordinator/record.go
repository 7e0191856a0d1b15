package coordinator

import (
	"errors"
	"fmt"
)

// The keys of the records of __consumer_offsets, by their version; later ones are of the protocol of KIP-848.
const (
	offsetKeyVersion int16 = 1 // 0 is read too
	groupKeyVersion  int16 = 2
	laterKeyMax      int16 = 8 // of consumer groups
)

// The versions of values that are written: those before the flexible ones, which Kafka reads and does not write.
const (
	offsetValueVersion   int16 = 3
	expiringValueVersion int16 = 1 // the only one with a time of expiry
	groupValueVersion    int16 = 3

	offsetValueMax = 4
	groupValueMax  = 4
)

var (
	// ErrUnknownKey: a record of a kind this coordinator does not know; it is passed over.
	ErrUnknownKey = errors.New("key of unknown version")
	// ErrMalformed: a record that is not what its version says.
	ErrMalformed = errors.New("malformed record")
)

// KeyKind says what a record is about.
type KeyKind uint8

// The kinds of keys.
const (
	OffsetKey KeyKind = iota + 1
	GroupKey
)

// Key is the key of a record: of a committed offset, or of a group.
type Key struct {
	Version   int16
	Kind      KeyKind
	Group     string
	Topic     string // of an OffsetKey, as Partition
	Partition int32
}

// rawKey is a Key that points into the record.
type rawKey struct {
	version      int16
	group, topic []byte
	partition    int32
}

func parseKey(b []byte) (rawKey, error) {
	r := reader{rest: b}
	k := rawKey{version: r.int16()}
	switch {
	case r.bad:
	case k.version < 0 || k.version > groupKeyVersion:
		return k, fmt.Errorf("%w: %d", ErrUnknownKey, k.version)
	case k.version == groupKeyVersion:
		k.group = r.string()
	default:
		k.group, k.topic, k.partition = r.string(), r.string(), r.int32()
	}
	if r.bad {
		return k, fmt.Errorf("%w: key of version %d and %d bytes", ErrMalformed, k.version, len(b))
	}
	return k, nil
}

// DecodeKey reads a record's key: versions 0 to 2, ErrUnknownKey for others, ErrMalformed for what is none.
func DecodeKey(b []byte) (Key, error) {
	raw, err := parseKey(b)
	if err != nil {
		return Key{Version: raw.version}, err
	}
	k := Key{Version: raw.version, Kind: OffsetKey, Group: string(raw.group), Topic: string(raw.topic), Partition: raw.partition}
	if raw.version == groupKeyVersion {
		k.Kind = GroupKey
	}
	return k, nil
}

// AppendTo appends the key in its version.
func (k Key) AppendTo(dst []byte) []byte {
	dst = appendInt16(dst, k.Version)
	dst = appendString(dst, k.Group)
	if k.Kind == OffsetKey {
		dst = appendInt32(appendString(dst, k.Topic), k.Partition)
	}
	return dst
}

// OffsetValue is the value of a committed offset.
type OffsetValue struct {
	Version     int16 // 0 to 4
	Offset      int64
	LeaderEpoch int32 // -1: not known; versions 3 and later
	Metadata    string
	CommitMs    int64
	ExpireMs    int64 // -1: by the broker's retention; version 1 alone
}

// rawOffset is an OffsetValue whose metadata points into the record.
type rawOffset struct {
	version     int16
	leaderEpoch int32
	offset      int64
	commitMs    int64
	expireMs    int64
	metadata    []byte
}

func parseOffset(b []byte) (rawOffset, error) {
	r := reader{rest: b}
	v := rawOffset{version: r.int16(), leaderEpoch: -1, expireMs: -1}
	if v.version < 0 || v.version > offsetValueMax {
		return v, fmt.Errorf("%w: offset of version %d", ErrMalformed, v.version)
	}
	r.flex = v.version >= 4
	v.offset = r.int64()
	if v.version >= 3 {
		v.leaderEpoch = r.int32()
	}
	v.metadata = r.string()
	v.commitMs = r.int64()
	if v.version == 1 {
		v.expireMs = r.int64()
	}
	r.tags()
	if r.bad {
		return v, fmt.Errorf("%w: offset of version %d and %d bytes", ErrMalformed, v.version, len(b))
	}
	return v, nil
}

// DecodeOffset reads the value of a committed offset, versions 0 to 4.
func DecodeOffset(b []byte) (OffsetValue, error) {
	v, err := parseOffset(b)
	if err != nil {
		return OffsetValue{Version: v.version}, err
	}
	return OffsetValue{Version: v.version, Offset: v.offset, LeaderEpoch: v.leaderEpoch, Metadata: string(v.metadata),
		CommitMs: v.commitMs, ExpireMs: v.expireMs}, nil
}

// AppendTo appends the value in its version, 0 to 3.
func (v OffsetValue) AppendTo(dst []byte) []byte {
	dst = appendInt64(appendInt16(dst, v.Version), v.Offset)
	if v.Version >= 3 {
		dst = appendInt32(dst, v.LeaderEpoch)
	}
	dst = appendInt64(appendString(dst, v.Metadata), v.CommitMs)
	if v.Version == 1 {
		dst = appendInt64(dst, v.ExpireMs)
	}
	return dst
}

// GroupValue is the value of a group: a generation with its members and what they were assigned.
type GroupValue struct {
	Version      int16 // 0 to 4
	ProtocolType string
	Generation   int32
	Protocol     *string // null if the group is empty, as Leader
	Leader       *string
	StateMs      int64 // when it entered its state; -1: not known; versions 2 and later
	Members      []MemberValue
}

// MemberValue is a member of a GroupValue.
type MemberValue struct {
	Member       string
	Instance     *string // versions 3 and later
	ClientID     string
	ClientHost   string
	RebalanceMs  int32 // version 0: the session timeout
	SessionMs    int32
	Subscription []byte
	Assignment   []byte
}

// memberValueMin is what a member takes at least.
const memberValueMin = 15

// DecodeGroup reads the value of a group, versions 0 to 4.
func DecodeGroup(b []byte) (GroupValue, error) {
	r := reader{rest: b}
	v := GroupValue{Version: r.int16(), StateMs: -1}
	if v.Version < 0 || v.Version > groupValueMax {
		return v, fmt.Errorf("%w: group of version %d", ErrMalformed, v.Version)
	}
	r.flex = v.Version >= 4
	v.ProtocolType = string(r.string())
	v.Generation = r.int32()
	v.Protocol, v.Leader = r.nullable(), r.nullable()
	if v.Version >= 2 {
		v.StateMs = r.int64()
	}
	n := r.array(memberValueMin)
	v.Members = make([]MemberValue, 0, n)
	for i := 0; i < n && !r.bad; i++ {
		v.Members = append(v.Members, decodeMember(&r, v.Version))
	}
	r.tags()
	if r.bad {
		return v, fmt.Errorf("%w: group of version %d and %d bytes", ErrMalformed, v.Version, len(b))
	}
	return v, nil
}

func decodeMember(r *reader, version int16) MemberValue {
	m := MemberValue{Member: string(r.string())}
	if version >= 3 {
		m.Instance = r.nullable()
	}
	m.ClientID, m.ClientHost = string(r.string()), string(r.string())
	if version >= 1 {
		m.RebalanceMs = r.int32()
	}
	m.SessionMs = r.int32()
	if version == 0 {
		m.RebalanceMs = m.SessionMs
	}
	m.Subscription = append([]byte{}, r.bytes()...)
	m.Assignment = append([]byte{}, r.bytes()...)
	r.tags()
	return m
}

// AppendTo appends the value in its version, 0 to 3.
func (v *GroupValue) AppendTo(dst []byte) []byte {
	dst = appendInt32(appendString(appendInt16(dst, v.Version), v.ProtocolType), v.Generation)
	dst = appendNullable(appendNullable(dst, v.Protocol), v.Leader)
	if v.Version >= 2 {
		dst = appendInt64(dst, v.StateMs)
	}
	dst = appendInt32(dst, int32(len(v.Members)))
	for i := range v.Members {
		m := &v.Members[i]
		dst = appendString(dst, m.Member)
		if v.Version >= 3 {
			dst = appendNullable(dst, m.Instance)
		}
		dst = appendString(appendString(dst, m.ClientID), m.ClientHost)
		if v.Version >= 1 {
			dst = appendInt32(dst, m.RebalanceMs)
		}
		dst = appendInt32(dst, m.SessionMs)
		dst = appendBytes(appendBytes(dst, m.Subscription), m.Assignment)
	}
	return dst
}

package coordinator

import (
	"encoding/base64"
	"strconv"
	"unicode/utf8"
)

// The String forms are what Kafka's kafka-dump-log prints with --offsets-decoder: JSON, with the fields in the order of their
// definition, and bytes in base 64.

// String gives a key as {"type":"1","data":{...}}.
func (k Key) String() string {
	b := append([]byte(nil), `{"type":"`...)
	b = strconv.AppendInt(b, int64(k.Version), 10)
	b = appendText(append(b, `","data":{"group":`...), k.Group)
	if k.Kind == OffsetKey {
		b = appendText(append(b, `,"topic":`...), k.Topic)
		b = appendNumber(append(b, `,"partition":`...), int64(k.Partition))
	}
	return string(append(b, "}}"...))
}

// LaterKey gives the key of a record of the groups of KIP-848, versions 3 to 8, in the form of Key's; false for any other.
func LaterKey(b []byte) (string, bool) {
	r := reader{rest: b}
	version := r.int16()
	if version <= groupKeyVersion || version > laterKeyMax {
		return "", false
	}
	text := append([]byte(nil), `{"type":"`...)
	text = strconv.AppendInt(text, int64(version), 10)
	text = appendText(append(text, `","data":{"groupId":`...), string(r.string()))
	if version == 5 || version >= 7 { // of a member
		text = appendText(append(text, `,"memberId":`...), string(r.string()))
	}
	return string(append(text, "}}"...)), !r.bad
}

// String gives a value as {"version":"3","data":{...}}.
func (v OffsetValue) String() string {
	b := appendVersion(nil, v.Version)
	b = appendNumber(append(b, `"offset":`...), v.Offset)
	if v.Version >= 3 {
		b = appendNumber(append(b, `,"leaderEpoch":`...), int64(v.LeaderEpoch))
	}
	b = appendText(append(b, `,"metadata":`...), v.Metadata)
	b = appendNumber(append(b, `,"commitTimestamp":`...), v.CommitMs)
	if v.Version == 1 {
		b = appendNumber(append(b, `,"expireTimestamp":`...), v.ExpireMs)
	}
	return string(append(b, "}}"...))
}

// String gives a value as {"version":"3","data":{...}}, with consumers' subscriptions and assignments taken apart.
func (v *GroupValue) String() string {
	b := appendVersion(nil, v.Version)
	b = appendText(append(b, `"protocolType":`...), v.ProtocolType)
	b = appendNumber(append(b, `,"generation":`...), int64(v.Generation))
	b = appendNullText(append(b, `,"protocol":`...), v.Protocol)
	b = appendNullText(append(b, `,"leader":`...), v.Leader)
	if v.Version >= 2 {
		b = appendNumber(append(b, `,"currentStateTimestamp":`...), v.StateMs)
	}
	b = append(b, `,"members":[`...)
	for i := range v.Members {
		if i > 0 {
			b = append(b, ',')
		}
		b = v.Members[i].appendJSON(b, v)
	}
	return string(append(b, "]}}"...))
}

func (m *MemberValue) appendJSON(b []byte, v *GroupValue) []byte {
	b = appendText(append(b, `{"memberId":`...), m.Member)
	if v.Version >= 3 {
		b = appendNullText(append(b, `,"groupInstanceId":`...), m.Instance)
	}
	b = appendText(append(b, `,"clientId":`...), m.ClientID)
	b = appendText(append(b, `,"clientHost":`...), m.ClientHost)
	if v.Version >= 1 {
		b = appendNumber(append(b, `,"rebalanceTimeout":`...), int64(m.RebalanceMs))
	}
	b = appendNumber(append(b, `,"sessionTimeout":`...), int64(m.SessionMs))
	b = append(b, `,"subscription":`...)
	if text, ok := subscriptionJSON(m.Subscription); ok && v.ProtocolType == consumerType {
		b = append(b, text...)
	} else {
		b = appendBase64(b, m.Subscription)
	}
	b = append(b, `,"assignment":`...)
	if text, ok := assignmentJSON(m.Assignment); ok && v.ProtocolType == consumerType {
		b = append(b, text...)
	} else {
		b = appendBase64(b, m.Assignment)
	}
	return append(b, '}')
}

// subscriptionJSON is a consumer's subscription (KIP-429, KIP-792, KIP-881); false if it is none.
func subscriptionJSON(data []byte) ([]byte, bool) {
	r := reader{rest: data}
	version := r.int16()
	b := append([]byte(nil), `{"topics":[`...)
	for i, n := 0, r.array(2); i < n && !r.bad; i++ {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, string(r.string()))
	}
	b = appendNullBytes(append(b, `],"userData":`...), r.nullableBytes())
	if version >= 1 {
		b = r.topicsJSON(append(b, `,"ownedPartitions":`...))
	}
	if version >= 2 {
		b = appendNumber(append(b, `,"generationId":`...), int64(r.int32()))
	}
	if version >= 3 {
		b = appendNullText(append(b, `,"rackId":`...), r.nullable())
	}
	return append(b, '}'), !r.bad
}

// assignmentJSON is what a consumer is assigned; false if it is not.
func assignmentJSON(data []byte) ([]byte, bool) {
	r := reader{rest: data}
	r.int16() // all versions are alike
	b := r.topicsJSON([]byte(`{"assignedPartitions":`))
	b = appendNullBytes(append(b, `,"userData":`...), r.nullableBytes())
	return append(b, '}'), !r.bad
}

func (r *reader) topicsJSON(b []byte) []byte {
	b = append(b, '[')
	for i, n := 0, r.array(6); i < n && !r.bad; i++ {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(append(b, `{"topic":`...), string(r.string()))
		b = append(b, `,"partitions":[`...)
		for i, n := 0, r.array(4); i < n && !r.bad; i++ {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendNumber(b, int64(r.int32()))
		}
		b = append(b, "]}"...)
	}
	return append(b, ']')
}

func appendVersion(b []byte, version int16) []byte {
	b = strconv.AppendInt(append(b, `{"version":"`...), int64(version), 10)
	return append(b, `","data":{`...)
}

func appendNumber(b []byte, n int64) []byte { return strconv.AppendInt(b, n, 10) }

func appendNullText(b []byte, s *string) []byte {
	if s == nil {
		return append(b, "null"...)
	}
	return appendText(b, *s)
}

func appendNullBytes(b, data []byte) []byte {
	if data == nil {
		return append(b, "null"...)
	}
	return appendBase64(b, data)
}

func appendBase64(b, data []byte) []byte {
	return append(base64.StdEncoding.AppendEncode(append(b, '"'), data), '"')
}

// appendText appends a JSON string as Jackson writes it: only what must be escaped is.
func appendText(b []byte, s string) []byte {
	const hex = "0123456789ABCDEF"
	short := map[rune]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}
	b = append(b, '"')
	for _, r := range s {
		switch c, ok := short[r]; {
		case ok:
			b = append(b, '\\', c)
		case r < 0x20:
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

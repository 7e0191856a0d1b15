package coordinator

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strings"
	"time"
)

// newMemberJoinMax bounds how long a new member waits in a join: it cannot send heartbeats before it knows its id, so one that
// is gone would be kept for ever.
const newMemberJoinMax = 5 * time.Minute

// member is a member of a group.
type member struct {
	group       *group
	id          string
	instance    *string // of a static member
	clientID    string
	clientHost  string
	sessionMs   int32
	rebalanceMs int32
	protocols   []Protocol
	assignment  []byte

	join     *Join // waits for the generation to begin
	sync     *Sync // waits for the leader's assignment
	isNew    bool  // has not been answered with its id: it must join in newMemberJoinMax
	unsynced bool  // has been told the generation and has not sent Sync
	session  timer
}

// pendingMember is an id that was given away with ErrMemberIDRequired and has not joined.
type pendingMember struct {
	group   *group
	id      string
	session timer
}

func (m *member) metadata(protocol string) []byte {
	for _, p := range m.protocols {
		if p.Name == protocol {
			return p.Metadata
		}
	}
	return nil
}

// matches says whether the member would change nothing by joining with these protocols.
func (m *member) matches(protocols []Protocol) bool {
	return slices.EqualFunc(m.protocols, protocols, func(a, b Protocol) bool {
		return a.Name == b.Name && bytes.Equal(a.Metadata, b.Metadata)
	})
}

// keepProtocols copies what a request brought, without names that come a second time: those are never asked for.
func keepProtocols(protocols []Protocol) []Protocol {
	kept := make([]Protocol, 0, len(protocols))
	seen := make(map[string]bool, len(protocols)) // a request may name hundreds of thousands
	for _, p := range protocols {
		if !seen[p.Name] {
			seen[p.Name] = true
			kept = append(kept, Protocol{Name: strings.Clone(p.Name), Metadata: bytes.Clone(p.Metadata)})
		}
	}
	return kept
}

func keepString(s *string) *string {
	if s == nil {
		return nil
	}
	kept := strings.Clone(*s)
	return &kept
}

// newMemberID makes an id as Kafka does: the client's id, or a static member's instance id, and a random UUID.
func (s *Shard) newMemberID(j *Join) string {
	prefix := j.ClientID
	if j.Instance != nil {
		prefix = *j.Instance
	}
	var u [16]byte
	for i := 0; i < len(u); i += 8 {
		for n, v := i, s.rand.Uint64(); n < i+8; n, v = n+1, v>>8 {
			u[n] = byte(v)
		}
	}
	u[6] = u[6]&0x0f | 0x40 // version 4
	u[8] = u[8]&0x3f | 0x80 // RFC 9562's variant
	text := make([]byte, 0, len(prefix)+1+36)
	text = append(append(text, prefix...), '-')
	for i, part := range [][]byte{u[:4], u[4:6], u[6:8], u[8:10], u[10:]} {
		if i > 0 {
			text = append(text, '-')
		}
		text = hex.AppendEncode(text, part)
	}
	return string(text)
}

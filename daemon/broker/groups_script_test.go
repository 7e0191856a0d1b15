package broker

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/wire"
)

// script asks a broker about groups and writes down what it is told, a line for each request and answer, so that two brokers can be
// held against each other. What differs by nature is made equal: ids that are drawn, addresses, the order of what has none.
type script struct {
	t     testing.TB
	p     place
	conns map[string]*client
	under map[string][]kmsg.Request // sent and not yet answered, by connection
	ids   map[string]string
	lines []string
}

func newScript(t testing.TB, p place) *script {
	return &script{t: t, p: p, conns: map[string]*client{}, under: map[string][]kmsg.Request{}, ids: map[string]string{}}
}

func (s *script) say(format string, args ...any) {
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

func (s *script) conn(name string) *client {
	c := s.conns[name]
	if c == nil {
		c = connect(s.t, s.p)
		s.conns[name] = c
	}
	return c
}

// send sends a request on a connection, whose answer take reads.
func (s *script) send(conn string, m kmsg.Request, version int16) {
	m.SetVersion(version)
	s.say("%s> %s v%d %s", conn, wire.Name(m.Key()), version, s.text(m))
	s.post(conn, m)
}

func (s *script) post(conn string, m kmsg.Request) {
	c := s.conn(conn)
	c.next++
	head := wire.RequestHeader{Key: m.Key(), Version: m.GetVersion(), CorrelationID: c.next, ClientID: []byte(conn)}
	frame := m.AppendTo(wire.AppendRequestHeader(make([]byte, 4), &head))
	wire.PutFrameSize(frame, 0)
	c.link.send(frame)
	s.under[conn] = append(s.under[conn], m)
}

// read reads an answer, strictly: encoded again it must be the same bytes.
func (s *script) read(conn string) kmsg.Response {
	s.t.Helper()
	m := s.under[conn][0]
	s.under[conn] = s.under[conn][1:]
	head, err := s.conns[conn].read(4)
	if err != nil {
		s.t.Fatalf("%s: %s %d: %v", conn, wire.Name(m.Key()), m.GetVersion(), err)
	}
	body, err := s.conns[conn].read(int(binary.BigEndian.Uint32(head)))
	if err != nil {
		s.t.Fatalf("%s: %s %d: %v", conn, wire.Name(m.Key()), m.GetVersion(), err)
	}
	resp := m.ResponseKind()
	resp.SetVersion(m.GetVersion())
	body = body[wire.ResponseHeaderSize(m.Key(), m.GetVersion()):]
	if err := resp.ReadFrom(body); err != nil {
		s.t.Fatalf("%s: %s %d: %v: %x", conn, wire.Name(m.Key()), m.GetVersion(), err, body)
	}
	if again := resp.AppendTo(nil); !bytes.Equal(again, body) {
		s.t.Errorf("%s: %s %d: answered\n%x, which means\n%x", conn, wire.Name(m.Key()), m.GetVersion(), body, again)
	}
	return resp
}

// take reads the oldest answer of a connection and writes it down.
func (s *script) take(conn string) kmsg.Response {
	s.t.Helper()
	resp := s.read(conn)
	sortAnswer(resp)
	s.say("%s< %s v%d %s", conn, wire.Name(resp.Key()), resp.GetVersion(), s.text(resp))
	return resp
}

// ask sends a request and takes its answer.
func (s *script) ask(conn string, m kmsg.Request, version int16) kmsg.Response {
	s.t.Helper()
	s.send(conn, m, version)
	return s.take(conn)
}

// until asks, without writing down, until the answer is as wanted.
func (s *script) until(conn string, m kmsg.Request, version int16, wanted func(kmsg.Response) bool) {
	s.t.Helper()
	m.SetVersion(version)
	if !eventually(func() bool {
		s.post(conn, m)
		return wanted(s.read(conn))
	}) {
		s.t.Fatalf("%s %d is not answered as wanted", wire.Name(m.Key()), version)
	}
}

func (s *script) close() {
	for _, c := range s.conns {
		c.close()
	}
}

var (
	drawn   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	address = regexp.MustCompile(`"/[0-9.]+"`)
	message = regexp.MustCompile(`"ErrorMessage":"[^"]+"`)
	located = regexp.MustCompile(`"Host":"[0-9.]+","Port":\d+`)
	quiet   = regexp.MustCompile(`"TopicID":\[[0,]+\],|"UnknownTags":\{\},?|"Version":\d+,|"ThrottleMillis":0,`)
)

// text is a message as it stands in the script.
func (s *script) text(m any) string {
	b, err := json.Marshal(m)
	if err != nil {
		s.t.Fatal(err)
	}
	text := quiet.ReplaceAllString(string(b), "")
	text = message.ReplaceAllString(strings.ReplaceAll(text, ",}", "}"), `"ErrorMessage":"..."`)
	text = address.ReplaceAllString(text, `"/address"`)
	text = located.ReplaceAllString(text, `"Host":"host","Port":9092`)
	return drawn.ReplaceAllStringFunc(text, func(id string) string {
		if s.ids[id] == "" {
			s.ids[id] = fmt.Sprintf("id%d", len(s.ids)+1)
		}
		return s.ids[id]
	})
}

// sortAnswer orders what has no order of its own.
func sortAnswer(resp kmsg.Response) {
	switch r := resp.(type) {
	case *kmsg.JoinGroupResponse:
		slices.SortFunc(r.Members, func(a, b kmsg.JoinGroupResponseMember) int {
			if a.InstanceID != nil && b.InstanceID != nil {
				return cmp.Compare(*a.InstanceID, *b.InstanceID)
			}
			return bytes.Compare(a.ProtocolMetadata, b.ProtocolMetadata)
		})
	case *kmsg.DescribeGroupsResponse:
		for i := range r.Groups {
			slices.SortFunc(r.Groups[i].Members, func(a, b kmsg.DescribeGroupsResponseGroupMember) int { return cmp.Compare(a.ClientID, b.ClientID) })
		}
	case *kmsg.ListGroupsResponse:
		slices.SortFunc(r.Groups, func(a, b kmsg.ListGroupsResponseGroup) int { return cmp.Compare(a.Group, b.Group) })
	case *kmsg.DeleteGroupsResponse:
		slices.SortFunc(r.Groups, func(a, b kmsg.DeleteGroupsResponseGroup) int { return cmp.Compare(a.Group, b.Group) })
	case *kmsg.OffsetCommitResponse:
		slices.SortFunc(r.Topics, func(a, b kmsg.OffsetCommitResponseTopic) int { return cmp.Compare(a.Topic, b.Topic) })
		for _, t := range r.Topics {
			slices.SortFunc(t.Partitions, func(a, b kmsg.OffsetCommitResponseTopicPartition) int { return cmp.Compare(a.Partition, b.Partition) })
		}
	case *kmsg.OffsetDeleteResponse:
		slices.SortFunc(r.Topics, func(a, b kmsg.OffsetDeleteResponseTopic) int { return cmp.Compare(a.Topic, b.Topic) })
		for _, t := range r.Topics {
			slices.SortFunc(t.Partitions, func(a, b kmsg.OffsetDeleteResponseTopicPartition) int { return cmp.Compare(a.Partition, b.Partition) })
		}
	case *kmsg.OffsetFetchResponse:
		slices.SortFunc(r.Topics, func(a, b kmsg.OffsetFetchResponseTopic) int { return cmp.Compare(a.Topic, b.Topic) })
		for _, t := range r.Topics {
			slices.SortFunc(t.Partitions, func(a, b kmsg.OffsetFetchResponseTopicPartition) int { return cmp.Compare(a.Partition, b.Partition) })
		}
		for _, g := range r.Groups {
			slices.SortFunc(g.Topics, func(a, b kmsg.OffsetFetchResponseGroupTopic) int { return cmp.Compare(a.Topic, b.Topic) })
			for _, t := range g.Topics {
				slices.SortFunc(t.Partitions, func(a, b kmsg.OffsetFetchResponseGroupTopicPartition) int {
					return cmp.Compare(a.Partition, b.Partition)
				})
			}
		}
	}
}

package api

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"kring/wire"
)

func counter() func() uint32 {
	n := uint32(0)
	return func() uint32 { n += 1000; return n }
}

// check holds the cache against itself.
func (s *sessions) check() error {
	partitions, n := 0, 0
	var before *session
	for f := s.oldest; f != nil; f = f.newer {
		if f.older != before || s.byID[f.id] != f || f.id%s.loops != s.loop {
			return fmt.Errorf("session %d is linked wrongly", f.id)
		}
		if before != nil && before.used > f.used {
			return fmt.Errorf("session %d is newer than one used later", f.id)
		}
		parts := 0
		for p := f.first; p != nil; p = p.next {
			if f.byKey[p.key] != p {
				return fmt.Errorf("session %d lists a partition it does not know", f.id)
			}
			parts++
		}
		if parts != len(f.byKey) {
			return fmt.Errorf("session %d lists %d of %d partitions", f.id, parts, len(f.byKey))
		}
		partitions += parts
		before = f
		n++
	}
	if n != len(s.byID) || partitions != s.partitions || s.newest != before {
		return fmt.Errorf("%d sessions of %d, %d partitions of %d", n, len(s.byID), partitions, s.partitions)
	}
	if n > s.slots || s.partitions > s.partitionsMost {
		return fmt.Errorf("%d sessions, %d partitions: over the limit", n, s.partitions)
	}
	return nil
}

func TestSessionsKeepTheirLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &sessions{}
		s.start(1, 2, 8)
		s.partitionsMost = 30
		random, now := counter(), time.Duration(0)
		var live []*session
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			now += time.Duration(rapid.IntRange(0, 200).Draw(t, "seconds")) * time.Second
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0, 1:
				n := rapid.IntRange(0, 12).Draw(t, "partitions")
				if f := s.create(n, false, rapid.Bool().Draw(t, "follower"), now, random); f != nil {
					for i := range n {
						if s.want(f, []byte("t"), [16]byte{}, int32(i), wanted{}) == nil {
							t.Fatal("no room for a partition there was room for")
						}
					}
					live = append(live, f)
				}
			case 2:
				for _, f := range live {
					if s.byID[f.id] == f && rapid.Bool().Draw(t, "used") {
						s.touch(f, now)
					}
				}
			case 3:
				s.close(int32(rapid.IntRange(0, 90).Draw(t, "id") * 1000))
			case 4:
				for _, f := range live {
					if s.byID[f.id] != f || f.first == nil {
						continue
					}
					if rapid.Bool().Draw(t, "forgets") {
						s.forget(f, []byte("t"), [16]byte{}, f.first.key.index)
					} else {
						f.rotate(f.first)
					}
				}
			}
			if err := s.check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestWhoMakesRoomForWhom(t *testing.T) {
	const old, young = sessionIdle + time.Second, time.Second
	for _, tt := range []struct {
		name          string
		age, unused   time.Duration
		privileged    bool
		size          int
		newSize       int
		newPrivileged bool
		want          bool
	}{
		{"a larger one takes the place of an old one", old, young, false, 2, 3, false, true},
		{"not of a young one", young, young, false, 2, 3, false, false},
		{"a smaller one does not", old, young, false, 3, 2, false, false},
		{"an idle one goes whatever comes", old, old, false, 3, 1, false, true},
		{"a follower takes a young consumer's place", young, young, false, 9, 1, true, true},
		{"a consumer never takes a follower's place", old, young, true, 1, 9, false, false},
		{"a larger follower takes an old follower's", old, young, true, 1, 9, true, true},
		{"not a young follower's", young, young, true, 1, 9, true, false},
		{"a consumer takes an idle follower's", old, old, true, 1, 9, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &sessions{}
			s.start(0, 1, 1)
			random := counter()
			f := s.create(tt.size, false, tt.privileged, 0, random)
			for i := range tt.size {
				s.want(f, []byte("t"), [16]byte{}, int32(i), wanted{})
			}
			s.touch(f, tt.age-tt.unused)
			if got := s.create(tt.newSize, false, tt.newPrivileged, tt.age, random) != nil; got != tt.want {
				t.Fatalf("room made: %v, want %v", got, tt.want)
			}
		})
	}
}

// session begins one over partitions of topic a.
func (p *peer) session(version int16, parts ...from) *kmsg.FetchResponse {
	p.x.t.Helper()
	req := p.x.fetchRequest(version, 0, 1, parts...)
	req.SessionEpoch = 0
	resp := call[*kmsg.FetchResponse](p, req)
	if resp.ErrorCode != 0 || resp.SessionID <= 0 {
		p.x.t.Fatalf("session %d, error %v", resp.SessionID, wire.Code(resp.ErrorCode))
	}
	return resp
}

// next goes on with a session; what is named has changed.
func (p *peer) next(version int16, id, epoch int32, parts ...from) *kmsg.FetchResponse {
	p.x.t.Helper()
	req := p.x.fetchRequest(version, 0, 1, parts...)
	req.SessionID, req.SessionEpoch = id, epoch
	return call[*kmsg.FetchResponse](p, req)
}

func names(resp *kmsg.FetchResponse) string {
	s := ""
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			s += fmt.Sprint(p.Partition)
		}
	}
	return s
}

func TestIncrementalFetchTellsWhatChanged(t *testing.T) {
	for _, version := range []int16{7, 11, 12, 13, 17} {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) {
			eachLoops(t, func(t *testing.T, loops int) {
				x := newWorld(t, loops, topic{name: "a", partitions: 3})
				p := x.dial(0)
				p.put("a", 1, records(1, 1))
				first := p.session(version, from{"a", 0, 0}, from{"a", 1, 0}, from{"a", 2, 0})
				if got := names(first); got != "012" {
					t.Fatalf("the first answer holds %q, want all", got)
				}
				id := first.SessionID
				if got := names(p.next(version, id, 1, from{"a", 1, 1})); got != "" {
					t.Fatalf("nothing new, but the answer holds %q", got)
				}
				p.put("a", 2, records(1, 1))
				resp := p.next(version, id, 2)
				if got := names(resp); got != "2" || len(x.got(resp, "a", 2).RecordBatches) == 0 || resp.SessionID != id {
					t.Fatalf("the answer holds %q of session %d, want partition 2 of %d", got, resp.SessionID, id)
				}
				// Not told to go on, partition 2 is sent again; 0 is forgotten and says nothing though it has data.
				p.put("a", 0, records(1, 1))
				req := x.fetchRequest(version, 0, 1)
				req.SessionID, req.SessionEpoch = id, 3
				forget := kmsg.NewFetchRequestForgottenTopic()
				forget.Topic, forget.TopicID, forget.Partitions = "a", x.topics["a"].ID, []int32{0}
				req.ForgottenTopics = append(req.ForgottenTopics, forget)
				if got := names(call[*kmsg.FetchResponse](p, req)); got != "2" {
					t.Fatalf("the answer holds %q, want 2", got)
				}
				if resp := p.next(version, id, 3); wire.Code(resp.ErrorCode) != wire.InvalidFetchSessionEpoch {
					t.Fatalf("an old epoch: %v", wire.Code(resp.ErrorCode))
				}
				if got := p.next(version, id, finalEpoch, from{"a", 0, 0}); got.SessionID != 0 || names(got) != "0" {
					t.Fatalf("closing: session %d, %q", got.SessionID, names(got))
				}
				if resp := p.next(version, id, 4); wire.Code(resp.ErrorCode) != wire.FetchSessionIDNotFound {
					t.Fatalf("a closed session: %v", wire.Code(resp.ErrorCode))
				}
			})
		})
	}
}

func TestSessionOfNamesIsNotOneOfIDs(t *testing.T) {
	x := newWorld(t, 1, topic{name: "a", partitions: 1})
	p := x.dial(0)
	byName, byID := p.session(12, from{"a", 0, 0}).SessionID, p.session(13, from{"a", 0, 0}).SessionID
	if code := wire.Code(p.next(13, byName, 1).ErrorCode); code != wire.FetchSessionTopicIDError {
		t.Fatalf("names, then ids: %v", code)
	}
	if code := wire.Code(p.next(12, byID, 1).ErrorCode); code != wire.FetchSessionTopicIDError {
		t.Fatalf("ids, then names: %v", code)
	}
}

func TestSessionWithAnErrorTellsThePartitionAgainWhenItIsGone(t *testing.T) {
	x := newWorld(t, 1, topic{name: "a", partitions: 1})
	p := x.dial(0)
	id := p.session(12, from{"a", 0, 0}, from{"b", 0, 0}).SessionID
	if got := names(p.next(12, id, 1)); got != "0" {
		t.Fatalf("the error is told %q, want each time", got)
	}
	x.create(topic{name: "b", partitions: 1}, [16]byte{9})
	resp := p.next(12, id, 2)
	if rp := x.got(resp, "b", 0); rp == nil || rp.ErrorCode != 0 || rp.HighWatermark != 0 {
		t.Fatalf("the partition that is there now: %+v", rp)
	}
	if got := names(p.next(12, id, 3)); got != "" {
		t.Fatalf("told again: %q", got)
	}
}

func TestSessionRotates(t *testing.T) {
	x := newWorld(t, 1, topic{name: "a", partitions: 3})
	p := x.dial(0)
	for i := range 3 {
		p.put("a", int32(i), records(1, 1000))
	}
	req := x.fetchRequest(12, 0, 1, from{"a", 0, 0}, from{"a", 1, 0}, from{"a", 2, 0})
	req.SessionEpoch, req.MaxBytes = 0, 1
	resp := call[*kmsg.FetchResponse](p, req)
	served := map[int32]int{}
	for epoch := int32(1); epoch <= 7; epoch++ {
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				if len(p.RecordBatches) > 0 {
					served[p.Partition]++
				}
			}
		}
		req := x.fetchRequest(12, 0, 1)
		req.SessionID, req.SessionEpoch, req.MaxBytes = resp.SessionID, epoch, 1
		resp = call[*kmsg.FetchResponse](p, req)
	}
	for i := range int32(3) {
		if served[i] < 2 {
			t.Fatalf("partition %d was served %d of 7 times: %v", i, served[i], served)
		}
	}
}

func TestSessionClosedFromAnotherLoop(t *testing.T) {
	x := newWorld(t, 2, topic{name: "a", partitions: 1})
	p, q := x.dial(0), x.dial(1)
	id := p.session(12, from{"a", 0, 0}).SessionID
	if code := wire.Code(q.next(12, id, 1).ErrorCode); code != wire.FetchSessionIDNotFound {
		t.Fatalf("over another loop: %v", code)
	}
	req := x.fetchRequest(12, 0, 1, from{"a", 0, 0})
	req.SessionID = id
	call[*kmsg.FetchResponse](q, req)
	x.turn()
	if code := wire.Code(p.next(12, id, 1).ErrorCode); code != wire.FetchSessionIDNotFound {
		t.Fatalf("closed over another loop: %v", code)
	}
}

package api

import (
	"math"
	"time"

	"kring/wire"
)

// Fetch session numbers (KIP-227).
const (
	noSession    int32 = 0  // session id: none
	initialEpoch int32 = 0  // begin a session with all partitions
	finalEpoch   int32 = -1 // no session, and close the one named
)

// sessionIdle is how long a session must be unused, or old, before another may take its place
// (min.incremental.fetch.session.eviction.ms of Kafka, which is no setting there either).
const sessionIdle = 120 * time.Second

// sessionPartitionsMost bounds the partitions that the sessions of one broker remember, some 200 bytes each: slots alone do
// not bound memory. Beyond it a client gets no session, which every client understands.
const sessionPartitionsMost = 200_000

// sessions is one loop's share of the fetch session cache. A session's id tells its loop (id modulo the number of loops): a
// client that comes back over a connection of another loop is told that its session is not known, and begins anew.
type sessions struct {
	loop, loops    int32
	slots          int // of this loop
	partitionsMost int
	byID           map[int32]*session
	partitions     int
	oldest, newest *session // by last use
	evicted        int64
}

func (s *sessions) start(loop, loops int32, slots int) {
	s.loop, s.loops = loop, max(loops, 1)
	s.slots = (slots + int(s.loops) - 1) / int(s.loops)
	s.partitionsMost = sessionPartitionsMost / int(s.loops)
	s.byID = map[int32]*session{}
}

// session is what a client need not say again.
type session struct {
	id, epoch int32
	// usesIDs: begun by Fetch 13 or later. privileged: a follower's.
	usesIDs, privileged bool
	created, used       time.Duration
	byKey               map[sessionKey]*sessionPart
	first, last         *sessionPart // in the order to read and answer them
	older, newer        *session
}

type sessionKey struct {
	topic string // without topic ids
	id    [16]byte
	index int32
}

// sessionPart is one partition of a session: what the client asked for last, and what it was told last.
type sessionPart struct {
	key        sessionKey
	name       []byte // of key, empty with ids
	want       wanted
	hw, start  int64 // as the client was told
	next, prev *sessionPart
}

// wanted is what a fetch asks of a partition.
type wanted struct {
	offset           int64
	start            int64 // a follower's log start
	bytes            int32
	epoch, lastEpoch int32
}

func nextEpoch(e int32) int32 {
	if e == math.MaxInt32 {
		return 1
	}
	return e + 1
}

// find gives the session an incremental request continues, or the code it is refused with.
func (s *sessions) find(id, epoch int32, usesIDs bool) (*session, wire.Code) {
	f := s.byID[id]
	switch {
	case f == nil:
		return nil, wire.FetchSessionIDNotFound
	case f.epoch != epoch:
		return nil, wire.InvalidFetchSessionEpoch
	case f.usesIDs != usesIDs:
		return nil, wire.FetchSessionTopicIDError
	}
	return f, wire.None
}

// create begins a session for n partitions if there is room, or room can be made; nil if not. random chooses the id.
func (s *sessions) create(n int, usesIDs, privileged bool, now time.Duration, random func() uint32) *session {
	if s.partitions+n > s.partitionsMost && !s.evict(n, privileged, now) || s.partitions+n > s.partitionsMost {
		return nil
	}
	if len(s.byID) >= s.slots && !s.evict(n, privileged, now) {
		return nil
	}
	f := &session{epoch: 1, usesIDs: usesIDs, privileged: privileged, created: now, used: now, byKey: make(map[sessionKey]*sessionPart, n)}
	for {
		f.id = int32(random()&math.MaxInt32)/s.loops*s.loops + s.loop
		if f.id > 0 && s.byID[f.id] == nil {
			break
		}
	}
	s.byID[f.id] = f
	s.push(f)
	return f
}

// evict makes room for a session of n partitions: it takes the one unused for longest if it is idle, else the least of those
// old enough to go, if that is less than the new one. Followers' sessions go before a consumer's only when they are old, and
// only for a follower.
func (s *sessions) evict(n int, privileged bool, now time.Duration) bool {
	if s.oldest == nil {
		return false
	}
	if now-s.oldest.used > sessionIdle {
		s.remove(s.oldest)
		s.evicted++
		return true
	}
	var least *session
	for f := s.oldest; f != nil; f = f.newer {
		old := now-f.created > sessionIdle
		if f.privileged && !(privileged && old) || !f.privileged && !privileged && !old {
			continue
		}
		if least == nil || f.less(least.privileged, len(least.byKey), least.id) {
			least = f
		}
	}
	if least == nil || !least.less(privileged, n, math.MaxInt32) {
		return false
	}
	s.remove(least)
	s.evicted++
	return true
}

// less orders sessions by what they are worth.
func (f *session) less(privileged bool, n int, id int32) bool {
	if f.privileged != privileged {
		return privileged
	}
	if len(f.byKey) != n {
		return len(f.byKey) < n
	}
	return f.id < id
}

// touch notes a use.
func (s *sessions) touch(f *session, now time.Duration) {
	f.used = now
	if s.newest != f {
		s.unlink(f)
		s.push(f)
	}
}

// close ends the session of this id, if it is here.
func (s *sessions) close(id int32) {
	if f := s.byID[id]; f != nil {
		s.remove(f)
	}
}

func (s *sessions) remove(f *session) {
	delete(s.byID, f.id)
	s.unlink(f)
	s.partitions -= len(f.byKey)
}

func (s *sessions) push(f *session) {
	f.older, f.newer = s.newest, nil
	if s.newest == nil {
		s.oldest = f
	} else {
		s.newest.newer = f
	}
	s.newest = f
}

func (s *sessions) unlink(f *session) {
	if f.older == nil {
		s.oldest = f.newer
	} else {
		f.older.newer = f.newer
	}
	if f.newer == nil {
		s.newest = f.older
	} else {
		f.newer.older = f.older
	}
	f.older, f.newer = nil, nil
}

// want notes what the client asks of a partition, which may be new to the session. It is nil when there is no room.
func (s *sessions) want(f *session, topic []byte, id [16]byte, index int32, w wanted) *sessionPart {
	if p := f.byKey[sessionKey{string(topic), id, index}]; p != nil {
		p.want = w
		return p
	}
	if s.partitions >= s.partitionsMost {
		return nil
	}
	p := &sessionPart{key: sessionKey{id: id, index: index}, want: w, hw: -1, start: -1}
	if last := f.last; last != nil && last.key.topic == string(topic) {
		p.key.topic, p.name = last.key.topic, last.name
	} else {
		p.key.topic = string(topic)
		p.name = []byte(p.key.topic)
	}
	f.byKey[p.key] = p
	f.append(p)
	s.partitions++
	return p
}

// forget takes a partition out of the session.
func (s *sessions) forget(f *session, topic []byte, id [16]byte, index int32) {
	p := f.byKey[sessionKey{string(topic), id, index}]
	if p == nil {
		return
	}
	delete(f.byKey, p.key)
	f.unlink(p)
	s.partitions--
}

// rotate puts a partition that was answered with data at the end: the others come first next time.
func (f *session) rotate(p *sessionPart) {
	if f.last != p {
		f.unlink(p)
		f.append(p)
	}
}

func (f *session) append(p *sessionPart) {
	p.prev, p.next = f.last, nil
	if f.last == nil {
		f.first = p
	} else {
		f.last.next = p
	}
	f.last = p
}

func (f *session) unlink(p *sessionPart) {
	if p.prev == nil {
		f.first = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		f.last = p.prev
	} else {
		p.next.prev = p.prev
	}
	p.prev, p.next = nil, nil
}

// answer says whether a partition must be in the answer of an incremental fetch, and remembers what it is told.
func (p *sessionPart) answer(code wire.Code, hw, start int64, bytes int64) bool {
	must := bytes > 0 || p.hw != hw || p.start != start || code != wire.None
	p.hw, p.start = hw, start
	if code != wire.None {
		p.hw = -1 // so that it is told again when the error is gone
	}
	return must
}

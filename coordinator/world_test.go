package coordinator

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// beginningMs is the wall clock when a world begins; its monotonic clock is 0 then.
const beginningMs = 1_700_000_000_000

func defaults() *Config {
	return &Config{MinSession: 6 * time.Second, MaxSession: 30 * time.Minute, InitialDelay: 3 * time.Second, MaxSize: 1<<31 - 1,
		MetadataMax: 4096, Retention: 7 * 24 * time.Hour}
}

// written is a batch in a test's journal, or a transaction's marker.
type written struct {
	Batch
	base              int64
	marker, committed bool
}

// list is a Journal in memory. What was appended is answered by answer; fail lets the next appends fail.
type list struct {
	batches  []written
	answered int // batches whose append was answered
	end      int64
	fail     []error
	most     int // bytes of records; 0: any
	waiting  []func(Now)
	onAppend func(Batch, error)
}

func (l *list) Takes(bytes int) bool { return l.most == 0 || bytes <= l.most }

func (l *list) Append(b Batch, done func(base int64, err error, now Now)) {
	var err error
	if len(l.fail) > 0 {
		err, l.fail = l.fail[0], l.fail[1:]
	}
	kept := written{Batch: b, base: l.end}
	kept.Records = make([]Record, len(b.Records))
	for i, r := range b.Records {
		kept.Records[i] = Record{bytes.Clone(r.Key), bytes.Clone(r.Value)}
	}
	if err == nil || errors.Is(err, ErrJournalTimedOut) {
		l.batches = append(l.batches, kept)
		l.end += int64(len(b.Records))
	}
	if l.onAppend != nil {
		l.onAppend(kept.Batch, err)
	}
	// What a shard gives is not to be kept: a test that keeps it sees rubbish.
	for _, r := range b.Records {
		clobber(r.Key)
		clobber(r.Value)
	}
	base := kept.base
	l.waiting = append(l.waiting, func(now Now) {
		if err == nil {
			l.answered++
		}
		done(base, err, now)
	})
}

// marker writes a producer's marker; done is called in its turn.
func (l *list) marker(producer int64, committed bool, done func()) {
	l.batches = append(l.batches, written{Batch: Batch{ProducerID: producer}, base: l.end, marker: true, committed: committed})
	l.end++
	l.waiting = append(l.waiting, func(Now) {
		l.answered++
		done()
	})
}

func clobber(b []byte) {
	for i := range b {
		b[i] = 0xee
	}
}

// answerOne answers the append that waits longest; false if none does.
func (l *list) answerOne(now Now) bool {
	if len(l.waiting) == 0 {
		return false
	}
	done := l.waiting[0]
	l.waiting = l.waiting[1:]
	done(now)
	return true
}

func (l *list) answer(now Now) {
	for l.answerOne(now) {
	}
}

// replay gives the first n batches to a shard, with what a broker would read back.
func replay(t interface{ Fatalf(string, ...any) }, s *Shard, batches []written) {
	for _, b := range batches {
		if b.marker {
			s.ReplayMarker(b.ProducerID, b.committed, b.base)
		}
		for i, r := range b.Records {
			e := Entry{Offset: b.base + int64(i), ProducerID: b.ProducerID, ProducerEpoch: b.ProducerEpoch, Transactional: b.Transactional,
				Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value)}
			if err := s.Replay(e); err != nil {
				t.Fatalf("replay of what was written: %v", err)
			}
			clobber(e.Key)
			clobber(e.Value)
		}
	}
}

// world is a shard that serves, its journal, and the time.
type world struct {
	t       testing.TB
	config  *Config
	shard   *Shard
	journal *list
	mono    time.Duration
	skew    time.Duration // of the wall clock
	epoch   int32
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, config: defaults(), journal: &list{}}
	w.shard = w.newShard()
	w.shard.BeginLoad(0)
	w.shard.Loaded(0, w.now())
	return w
}

func (w *world) newShard() *Shard {
	return NewShard(0, w.config, w.journal, rand.New(rand.NewPCG(1, uint64(w.epoch))))
}

func (w *world) now() Now {
	return Now{Mono: w.mono, UnixMilli: beginningMs + (w.mono + w.skew).Milliseconds()}
}

func (w *world) verify() {
	w.t.Helper()
	if err := w.shard.Verify(); err != nil {
		w.t.Fatal(err)
	}
}

// pass lets time pass: the shard is woken when it wants to be, and the journal answers at once.
func (w *world) pass(d time.Duration) {
	for until := w.mono + d; ; {
		next, ok := w.shard.Next()
		if !ok || next > until {
			w.mono = until
			return
		}
		w.mono = max(w.mono, next)
		w.shard.Tick(w.now())
		w.journal.answer(w.now())
		w.verify()
	}
}

// codes are the names users know the errors by.
var codes = map[error]string{
	ErrLoading: "COORDINATOR_LOAD_IN_PROGRESS", ErrNotCoordinator: "NOT_COORDINATOR", ErrUnavailable: "COORDINATOR_NOT_AVAILABLE",
	ErrTimedOut: "REQUEST_TIMED_OUT", ErrUnknownMember: "UNKNOWN_MEMBER_ID", ErrIllegalGeneration: "ILLEGAL_GENERATION",
	ErrRebalancing: "REBALANCE_IN_PROGRESS", ErrFencedInstance: "FENCED_INSTANCE_ID", ErrMemberIDRequired: "MEMBER_ID_REQUIRED",
	ErrGroupFull: "GROUP_MAX_SIZE_REACHED", ErrInconsistentProtocol: "INCONSISTENT_GROUP_PROTOCOL",
	ErrSessionTimeout: "INVALID_SESSION_TIMEOUT", ErrInvalidGroup: "INVALID_GROUP_ID", ErrNotEmpty: "NON_EMPTY_GROUP",
	ErrNotFound: "GROUP_ID_NOT_FOUND", ErrSubscribed: "GROUP_SUBSCRIBED_TO_TOPIC", ErrMetadataTooLarge: "OFFSET_METADATA_TOO_LARGE",
	ErrCommitTooLarge: "INVALID_COMMIT_OFFSET_SIZE", ErrUnstableOffset: "UNSTABLE_OFFSET_COMMIT", ErrUnknown: "UNKNOWN_SERVER_ERROR",
	nil: "ok",
}

func code(err error) string {
	if name, ok := codes[err]; ok {
		return name
	}
	return fmt.Sprintf("no code for %v", err)
}

// subscription is a consumer's metadata of the first version, without user data.
func subscription(topics ...string) []byte {
	b := appendInt32(appendInt16(nil, 0), int32(len(topics)))
	for _, topic := range topics {
		b = appendString(b, topic)
	}
	return appendInt32(b, -1)
}

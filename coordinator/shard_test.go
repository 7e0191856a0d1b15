package coordinator

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestEpochs(t *testing.T) {
	s := NewShard(3, defaults(), &list{}, rand.New(rand.NewPCG(1, 1)))
	if s.Serving() || s.Loading(0) {
		t.Fatal("a new shard does something")
	}
	if !s.BeginLoad(5) || !s.Loading(5) || s.Loading(4) {
		t.Fatal("does not load in epoch 5")
	}
	if s.BeginLoad(6) || !s.Loading(5) {
		t.Error("a later epoch begins another load of what is being loaded")
	}
	if s.Loaded(4, Now{}); s.Serving() {
		t.Error("serves by the end of a load that was not")
	}
	if s.Unload(5); !s.Loading(5) {
		t.Error("an older epoch unloads")
	}
	if s.Loaded(5, Now{}); !s.Serving() {
		t.Fatal("does not serve")
	}
	if s.Unload(7); s.Serving() {
		t.Fatal("serves on")
	}
	if s.BeginLoad(6) {
		t.Error("loads in an epoch before the one in which it was unloaded")
	}
	if !s.BeginLoad(8) {
		t.Error("does not load again")
	}
	if s.Unload(-1); s.Loading(8) {
		t.Error("is not unloaded whatever the epoch")
	}
}

func TestWhatComesLateChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.shard.Unload(1)
	w.shard.Expire(w.now())
	w.shard.TopicDeleted("t", w.now())
	w.shard.Tick(w.now())
	w.shard.CompleteTransaction(1, true)
	w.shard.ReplayMarker(1, true, 0)
	if err := w.shard.Replay(Entry{Key: Key{1, OffsetKey, "g", "t", 0}.AppendTo(nil), Value: OffsetValue{Version: 3}.AppendTo(nil)}); err != nil {
		t.Error(err)
	}
	if w.shard.Groups() != 0 || w.shard.Offsets() != 0 {
		t.Error("an unloaded shard takes records")
	}
	w.verify()
}

// commitOne commits an offset as nobody and returns the error it is answered with.
func (w *world) commitOne(group, topic string, partition int32, offset int64, metadata string) error {
	var err error
	w.shard.Commit(&Commit{Group: group, Generation: -1, RetentionMs: -1,
		Offsets: []CommitOffset{{topic, partition, offset, -1, metadata, -1, errors.New("not answered")}},
		Done:    func(c *Commit) { err = c.Offsets[0].Err }}, w.now())
	w.journal.answer(w.now())
	return err
}

func TestGroupsWantAName(t *testing.T) {
	w := newWorld(t)
	join := &Join{SessionMs: 10000, ProtocolType: "consumer", Protocols: []Protocol{{"range", nil}}, Done: func(*Join) {}}
	if w.shard.Join(join, w.now()); join.Answer.Err != ErrInvalidGroup {
		t.Errorf("join: %v", join.Answer.Err)
	}
	sync := &Sync{Done: func(*Sync) {}}
	if w.shard.Sync(sync, w.now()); sync.Answer.Err != ErrInvalidGroup {
		t.Errorf("sync: %v", sync.Answer.Err)
	}
	if err := w.shard.Heartbeat(&Heartbeat{}, w.now()); err != ErrInvalidGroup {
		t.Errorf("heartbeat: %v", err)
	}
	leave := &Leave{Done: func(*Leave) {}}
	if w.shard.Leave(leave, w.now()); leave.Err != ErrInvalidGroup {
		t.Errorf("leave: %v", leave.Err)
	}
	del := &DeleteOffsets{Done: func(*DeleteOffsets) {}}
	if w.shard.DeleteOffsets(del, w.now()); del.Err != ErrInvalidGroup {
		t.Errorf("delete offsets: %v", del.Err)
	}
	txn := &Commit{Transactional: true, ProducerID: 1, Generation: -1, Offsets: make([]CommitOffset, 1), Done: func(*Commit) {}}
	if w.shard.Commit(txn, w.now()); txn.Offsets[0].Err != ErrInvalidGroup {
		t.Errorf("transactional commit: %v", txn.Offsets[0].Err)
	}
	// Offsets may be kept for the group without a name, looked at and deleted.
	if err := w.commitOne("", "t", 0, 5, ""); err != nil {
		t.Errorf("commit: %v", err)
	}
	if v, err := w.shard.Describe(""); err != nil || v.State != Empty {
		t.Errorf("describe: %+v, %v", v, err)
	}
	group := &DeleteGroup{Done: func(*DeleteGroup) {}}
	w.shard.DeleteGroup(group, w.now())
	w.journal.answer(w.now())
	if group.Err != nil || w.shard.Groups() != 0 {
		t.Errorf("delete: %v, %d groups are left", group.Err, w.shard.Groups())
	}
	if err := w.shard.Heartbeat(&Heartbeat{Group: strings.Repeat("g", 1<<15)}, w.now()); err != ErrInvalidGroup {
		t.Errorf("a group id that no record holds: %v", err)
	}
}

func TestStringsFitIntoRecords(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("x", 1<<15)
	joins := map[string]*Join{
		"protocol":      {ProtocolType: "consumer", Protocols: []Protocol{{long, nil}}},
		"protocol type": {ProtocolType: long, Protocols: []Protocol{{"range", nil}}},
		"instance":      {ProtocolType: "consumer", Protocols: []Protocol{{"range", nil}}, Instance: &long},
		"client id":     {ProtocolType: "consumer", Protocols: []Protocol{{"range", nil}}, ClientID: long[1:]}, // the member id is longer
	}
	for name, j := range joins {
		j.Group, j.SessionMs, j.Done = "g", 10000, func(*Join) {}
		if w.shard.Join(j, w.now()); j.Answer.Err != ErrInconsistentProtocol {
			t.Errorf("%s: %v", name, j.Answer.Err)
		}
	}
	w.config.MetadataMax = 1 << 20
	if err := w.commitOne("g", "t", 0, 5, long); err != ErrMetadataTooLarge {
		t.Errorf("metadata: %v", err)
	}
	value := append(appendInt64(appendInt16(nil, 4), 0), 0, 0, 0, 0, 0x81, 0x80, 2) // a compact string of 2^15 bytes
	value = appendInt64(append(value, long...), 0)
	if _, err := DecodeOffset(append(value, 0)); !errors.Is(err, ErrMalformed) {
		t.Errorf("a compact string of %d bytes: %v", len(long), err)
	}
}

// TestMetadataIsCountedAsKafkaDoes: in UTF-16 code units.
func TestMetadataIsCountedAsKafkaDoes(t *testing.T) {
	w := newWorld(t)
	w.config.MetadataMax = 4
	for metadata, want := range map[string]error{"abcd": nil, "abcde": ErrMetadataTooLarge, "éééé": nil, "ééééé": ErrMetadataTooLarge,
		"😀😀": nil, "😀😀a": ErrMetadataTooLarge} {
		if err := w.commitOne("g", "t", 0, 1, metadata); err != want {
			t.Errorf("%q: %v", metadata, err)
		}
	}
}

// TestWhoIsAnsweredMayCall lets each answer ask the next question at once, as a connection with pipelined requests does.
func TestWhoIsAnsweredMayCall(t *testing.T) {
	w := newWorld(t)
	w.config.InitialDelay = 0
	stable := 0
	for i := range 3 {
		j := &Join{Group: "g", ClientID: fmt.Sprint(i), SessionMs: 10000, RebalanceMs: 10000, ProtocolType: "consumer",
			Protocols: []Protocol{{"range", subscription("t")}}}
		j.Done = func(j *Join) {
			w.verify()
			y := &Sync{Group: "g", Member: j.Answer.Member, Generation: j.Answer.Generation}
			for _, m := range j.Answer.Members {
				y.Assignments = append(y.Assignments, Assignment{m.Member, []byte(m.Member)})
			}
			y.Done = func(y *Sync) {
				w.verify()
				if y.Answer.Err != nil || string(y.Answer.Assignment) != y.Member {
					t.Errorf("sync of %s: %+v", y.Member, y.Answer)
				}
				stable++
				w.shard.Commit(&Commit{Group: "g", Member: y.Member, Generation: y.Generation, RetentionMs: -1,
					Offsets: []CommitOffset{{"t", int32(i), 1, -1, "", -1, nil}},
					Done: func(c *Commit) {
						w.verify()
						if c.Offsets[0].Err != nil {
							t.Error(c.Offsets[0].Err)
						}
						w.shard.Leave(&Leave{Group: "g", Members: []LeaveMember{{Member: y.Member}}, Done: func(*Leave) { w.verify() }}, w.now())
					}}, w.now())
			}
			w.shard.Sync(y, w.now())
		}
		w.shard.Join(j, w.now())
	}
	w.pass(time.Second)
	w.journal.answer(w.now())
	w.verify()
	if stable != 3 || w.shard.Offsets() == 0 {
		t.Errorf("%d were given their assignment, %d offsets were committed", stable, w.shard.Offsets())
	}
}

// TestManyOffsetsAreDeletedInPieces, so that no batch is larger than the journal takes.
func TestManyOffsetsAreDeletedInPieces(t *testing.T) {
	w := newWorld(t)
	c := &Commit{Group: "g", Generation: -1, RetentionMs: -1, Done: func(*Commit) {}}
	for p := range int32(2500) {
		c.Offsets = append(c.Offsets, CommitOffset{Topic: "t", Partition: p, CommitMs: -1})
	}
	w.shard.Commit(c, w.now())
	w.journal.answer(w.now())
	for _, failing := range []int{1, 0} {
		d := &DeleteGroup{Group: "g", Done: func(*DeleteGroup) {}}
		w.journal.fail = []error{nil, ErrJournalUnavailable}[:2*failing]
		w.shard.DeleteGroup(d, w.now())
		w.journal.answer(w.now())
		w.verify()
		if failing == 1 && (!errors.Is(d.Err, ErrUnavailable) || w.shard.Offsets() != 1000) {
			t.Errorf("a batch in the middle failed: %v, %d offsets are left", d.Err, w.shard.Offsets())
		}
		if failing == 0 && (d.Err != nil || w.shard.Groups() != 0) {
			t.Errorf("%v, %d groups are left", d.Err, w.shard.Groups())
		}
	}
	for _, b := range w.journal.batches[1:] {
		if len(b.Records) > tombstonesMax {
			t.Errorf("a batch of %d tombstones", len(b.Records))
		}
	}
	if s := newLoading(1); true {
		replay(t, s, w.journal.batches)
		if s.Loaded(0, Now{}); s.Groups() != 0 {
			t.Errorf("a restart finds %d groups", s.Groups())
		}
	}
}

// TestALongNameIsDeletedInSmallPieces: it stands in every tombstone.
func TestALongNameIsDeletedInSmallPieces(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("g", stringMax)
	c := &Commit{Group: long, Generation: -1, RetentionMs: -1, Done: func(*Commit) {}}
	for p := range int32(100) {
		c.Offsets = append(c.Offsets, CommitOffset{Topic: "t", Partition: p, CommitMs: -1})
	}
	w.shard.Commit(c, w.now())
	w.journal.answer(w.now())
	d := &DeleteGroup{Group: long, Done: func(*DeleteGroup) {}}
	w.shard.DeleteGroup(d, w.now())
	w.journal.answer(w.now())
	w.verify()
	if d.Err != nil || w.shard.Groups() != 0 {
		t.Errorf("%v, %d groups are left", d.Err, w.shard.Groups())
	}
	for _, b := range w.journal.batches[1:] {
		size := 0
		for _, r := range b.Records {
			size += len(r.Key)
		}
		if size > tombstoneBytesMax {
			t.Errorf("a batch of %d bytes", size)
		}
	}
}

// TestReplayOfTransactions reads transactional batches with tombstones in them, and markers without a transaction.
func TestReplayOfTransactions(t *testing.T) {
	s := newLoading(1)
	key := Key{1, OffsetKey, "g", "t", 0}.AppendTo(nil)
	value := func(offset int64) []byte { return OffsetValue{3, offset, -1, "note", 1, -1}.AppendTo(nil) }
	for _, e := range []Entry{{Offset: 1, ProducerID: -1, Key: key, Value: value(1)}, {Offset: 2, ProducerID: 7, Transactional: true, Key: key, Value: value(2)},
		{Offset: 3, ProducerID: 7, Transactional: true, Key: key}} {
		if err := s.Replay(e); err != nil {
			t.Fatal(err)
		}
	}
	s.ReplayMarker(7, true, 4)
	s.ReplayMarker(8, true, 5)
	s.Loaded(0, Now{})
	if err := s.Verify(); err != nil {
		t.Error(err)
	}
	s.Fetch("g", nil, true, func(c Committed) {
		if c.Err != nil || c.Offset != 1 || c.Metadata != "note" {
			t.Errorf("%+v", c)
		}
	})
}

// TestNothingOfARequestIsKept: requests and their bytes are used again by who sent them.
func TestNothingOfARequestIsKept(t *testing.T) {
	w := newWorld(t)
	w.config.InitialDelay = 0
	metadata, data := subscription("t"), []byte("given")
	j := &Join{Group: "g", ClientID: "c", ClientHost: "/h", SessionMs: 10000, RebalanceMs: 10000, ProtocolType: "consumer",
		Protocols: []Protocol{{"range", metadata}}, Done: func(*Join) {}}
	w.shard.Join(j, w.now())
	w.pass(0)
	member := j.Answer.Member
	y := &Sync{Group: "g", Member: member, Generation: 1, Assignments: []Assignment{{member, data}}, Done: func(*Sync) {}}
	w.shard.Sync(y, w.now())
	before := bytes.Clone(metadata)
	clobber(data)
	w.journal.answer(w.now())
	clobber(metadata)
	j.Protocols[0] = Protocol{"other", nil}
	v, _ := w.shard.Describe("g")
	want := []MemberView{{Member: member, ClientID: "c", ClientHost: "/h", Metadata: before, Assignment: []byte("given")}}
	if !reflect.DeepEqual(v.Members, want) {
		t.Errorf("%+v, should be %+v", v.Members, want)
	}
}

// TestStepsAreTold to who observes a shard.
func TestStepsAreTold(t *testing.T) {
	w := newWorld(t)
	w.config.InitialDelay = 0
	var told []string
	w.shard.Observe = func(e Event) {
		told = append(told, fmt.Sprintf("%s %v %d %d %.3s", e.Group, e.State, e.Generation, e.Members, e.Reason))
	}
	j := &Join{Group: "g", SessionMs: 10000, RebalanceMs: 10000, ProtocolType: "consumer", Protocols: []Protocol{{"range", nil}}, Done: func(*Join) {}}
	w.shard.Join(j, w.now())
	w.pass(0)
	w.shard.Sync(&Sync{Group: "g", Member: j.Answer.Member, Generation: 1, Done: func(*Sync) {}}, w.now())
	w.journal.answer(w.now())
	w.pass(time.Minute)
	want := []string{"g PreparingRebalance 0 1 mem", "g CompletingRebalance 1 1 mem", "g Stable 1 1 mem", "g PreparingRebalance 1 0 ses",
		"g Empty 2 0 ses"}
	if !reflect.DeepEqual(told, want) {
		t.Errorf("%q, should be %q", told, want)
	}
	if w.shard.Rebalances() != 1 || w.shard.GroupsIn(Empty) != 1 {
		t.Errorf("%d rebalances, %d empty groups", w.shard.Rebalances(), w.shard.GroupsIn(Empty))
	}
}

// TestTwoShardsWithOneSeedAreOne: the same calls make the same ids and the same records.
func TestTwoShardsWithOneSeedAreOne(t *testing.T) {
	run := func() []written {
		w := newWorld(t)
		for i := range 40 {
			w.shard.Join(&Join{Group: fmt.Sprint("g", i%3), SessionMs: 6000, RebalanceMs: 7000, ProtocolType: "consumer",
				Protocols: []Protocol{{"range", subscription("t")}}, Done: func(j *Join) {
					if a := j.Answer; len(a.Members) > 0 {
						w.shard.Sync(&Sync{Group: j.Group, Member: a.Member, Generation: a.Generation, Done: func(*Sync) {}}, w.now())
					}
				}}, w.now())
			w.commitOne(fmt.Sprint("solo", i%5), fmt.Sprint("t", i%7), int32(i), 1, "")
			w.pass(time.Second)
		}
		w.shard.TopicDeleted("t3", w.now())
		w.pass(time.Minute)
		w.mono += 8 * 24 * time.Hour
		w.shard.Expire(w.now())
		return w.journal.batches
	}
	if a, b := run(), run(); !reflect.DeepEqual(a, b) || len(a) < 60 {
		t.Errorf("%d and %d batches that differ", len(a), len(b))
	}
}

// TestCommitThatCannotFitIsRefusedAtOnce: nothing is asked of the journal, and what has an error of its own keeps it.
func TestCommitThatCannotFitIsRefusedAtOnce(t *testing.T) {
	w := newWorld(t)
	w.journal.most = 1 << 20
	commit := func(n int) (errs map[error]int) {
		errs = map[error]int{}
		c := &Commit{Group: "g", Generation: -1, RetentionMs: -1, Done: func(c *Commit) {
			for i := range c.Offsets {
				errs[c.Offsets[i].Err]++
			}
		}}
		for i := range n {
			c.Offsets = append(c.Offsets, CommitOffset{Topic: "topic", Partition: int32(i), Offset: 1, LeaderEpoch: -1, CommitMs: -1})
		}
		c.Offsets[n/2].Metadata = strings.Repeat("m", 5000)
		w.shard.Commit(c, w.now())
		w.journal.answer(w.now())
		return errs
	}
	if got, want := commit(100_000), (map[error]int{ErrCommitTooLarge: 99_999, ErrMetadataTooLarge: 1}); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, should be %v", got, want)
	}
	if len(w.journal.batches) != 0 {
		t.Errorf("%d batches were written", len(w.journal.batches))
	}
	if got, want := commit(5000), (map[error]int{nil: 4999, ErrMetadataTooLarge: 1}); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, should be %v", got, want)
	}
	w.shard.check()
}

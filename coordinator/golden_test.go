package coordinator

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kring/wire/batch"
)

func TestPartitionOfIsKafkas(t *testing.T) {
	for group, want := range map[string]int32{"my-group": 12, "console-consumer-1": 24, "группа": 8, "g😀": 32,
		"polygenelubricants": 0 /* its hash is the smallest int */, "": 0} {
		if got := PartitionOf(group, 50); got != want {
			t.Errorf("%q: partition %d, should be %d", group, got, want)
		}
	}
	for group, want := range map[string]int32{"g-consumer": 0, "g-static": 0, "g-tx": 0, "g-admin": 1, "g-old": 2} {
		if got := PartitionOf(group, 3); got != want {
			t.Errorf("%q: partition %d of 3, should be %d", group, got, want)
		}
	}
}

// golden calls for each record of a captured log, and for each control batch with a nil record.
func golden(t testing.TB, file string, visit func(h batch.Header, r *batch.Record)) {
	log, err := os.ReadFile("testdata/golden/" + file)
	if err != nil {
		t.Fatal(err)
	}
	for len(log) > 0 {
		first, rest, err := batch.Whole(log)
		if err != nil {
			t.Fatal(err)
		}
		log = rest
		h := batch.Header(first)
		if h.Control() {
			records, _ := batch.Open(first, 1<<20)
			records.Next()
			visit(h, nil)
			continue
		}
		records, err := batch.Open(first, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for records.Next() {
			visit(h, &records.Record)
		}
	}
}

var dumped = regexp.MustCompile(`(?m)^\| offset: (\d+) .*?headerKeys: \[\] key: (\{.*\}) payload: (.*)$`)

// TestGoldenRecords decodes what Kafka wrote, prints it as Kafka's tool does, and encodes it again to the same bytes.
func TestGoldenRecords(t *testing.T) {
	count := 0
	for _, p := range []string{"0", "1", "2"} {
		text, err := os.ReadFile("testdata/golden/" + p + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		printed := map[int64][2]string{}
		for _, m := range dumped.FindAllStringSubmatch(string(text), -1) {
			offset, _ := strconv.ParseInt(m[1], 10, 64)
			printed[offset] = [2]string{m[2], m[3]}
		}
		golden(t, p+".log", func(h batch.Header, r *batch.Record) {
			if r == nil {
				return
			}
			count++
			k, err := DecodeKey(r.Key)
			if err != nil || !bytes.Equal(k.AppendTo(nil), r.Key) {
				t.Fatalf("key %x becomes %x: %v", r.Key, k.AppendTo(nil), err)
			}
			value := "<DELETE>"
			if r.Value != nil {
				again, text := reencode(t, k, r.Value)
				if !bytes.Equal(again, r.Value) {
					t.Fatalf("value %x becomes %x", r.Value, again)
				}
				value = text
			}
			if want := printed[r.Offset]; k.String() != want[0] || value != want[1] {
				t.Fatalf("prints\n%s\n%s\nKafka prints\n%s\n%s", k, value, want[0], want[1])
			}
		})
	}
	if count != 21 {
		t.Errorf("%d records", count)
	}
}

func reencode(t testing.TB, k Key, b []byte) ([]byte, string) {
	t.Helper()
	if k.Kind == OffsetKey {
		v, err := DecodeOffset(b)
		if err != nil {
			t.Fatal(err)
		}
		return v.AppendTo(nil), v.String()
	}
	v, err := DecodeGroup(b)
	if err != nil {
		t.Fatal(err)
	}
	return v.AppendTo(nil), v.String()
}

// TestGoldenLogLoads reads Kafka's partitions as a broker does that takes over from it.
func TestGoldenLogLoads(t *testing.T) {
	w := newWorld(t)
	w.shard = w.newShard()
	w.shard.BeginLoad(1)
	for _, p := range []string{"0", "1", "2"} {
		golden(t, p+".log", func(h batch.Header, r *batch.Record) {
			if r == nil {
				w.shard.ReplayMarker(h.ProducerID(), h.BaseOffset() == 1, h.BaseOffset()) // the first transaction was committed
				return
			}
			if err := w.shard.Replay(Entry{r.Offset, h.ProducerID(), h.ProducerEpoch(), h.Transactional(), r.Key, r.Value}); err != nil {
				t.Fatal(err)
			}
		})
	}
	w.shard.Loaded(1, w.now())
	w.verify()
	var got []string
	w.shard.VisitOffsets(func(group, topic string, partition int32, offset int64) {
		got = append(got, group+" "+topic+"-"+strconv.Itoa(int(partition))+" "+strconv.FormatInt(offset, 10))
	})
	want := []string{"g-tx codecs-0 7", "g-consumer codecs-0 30", "g-consumer codecs-1 30", "g-consumer codecs-2 30", "g-consumer codecs-3 30",
		"g-consumer codecs-4 30", "g-consumer nulls-0 9", "g-static rolls-0 60", "g-admin codecs-1 5", "g-old codecs-0 3"}
	if !slices.Equal(got, want) {
		t.Errorf("offsets\n%s\nshould be\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if v, _ := w.shard.Describe("g-static"); v.State != Empty || v.Generation != 2 || v.ProtocolType != "consumer" {
		t.Errorf("g-static is %+v", v)
	}
	if v, _ := w.shard.Describe("g-deleted"); v.State != Dead {
		t.Errorf("g-deleted is %+v", v)
	}
	unstable := 0
	asked := []TopicPartitions{{"codecs", []int32{0, 1, 2, 3, 4}}}
	w.shard.Fetch("g-tx", asked, true, func(c Committed) { unstable += one(c.Err == ErrUnstableOffset) })
	if unstable == 0 {
		t.Error("the open transactions are not known")
	}
}

// TestGoldenTwin commits what Kafka's records say, and stores the groups they tell of: the journal gets the same bytes.
func TestGoldenTwin(t *testing.T) {
	for _, p := range []string{"0", "1", "2"} {
		golden(t, p+".log", func(h batch.Header, r *batch.Record) {
			if r == nil || r.Value == nil {
				return
			}
			k, _ := DecodeKey(r.Key)
			w := newWorld(t)
			if k.Kind == GroupKey {
				w.shard = w.newShard()
				w.shard.BeginLoad(1)
				if err := w.shard.Replay(Entry{Key: r.Key, Value: r.Value, ProducerID: -1}); err != nil {
					t.Fatal(err)
				}
				w.shard.Loaded(1, w.now())
				w.shard.writeGroup(w.shard.groups[k.Group], (*member).assigned, w.now(), func(error, Now) {})
			} else {
				v, _ := DecodeOffset(r.Value)
				c := &Commit{Group: k.Group, Generation: -1, RetentionMs: -1, Transactional: h.Transactional(), ProducerID: h.ProducerID(),
					ProducerEpoch: h.ProducerEpoch(), Done: func(*Commit) {},
					Offsets: []CommitOffset{{k.Topic, k.Partition, v.Offset, v.LeaderEpoch, v.Metadata, v.CommitMs, nil}}}
				if v.ExpireMs != -1 {
					c.RetentionMs = v.ExpireMs - v.CommitMs
				}
				w.shard.Commit(c, Now{UnixMilli: v.CommitMs})
			}
			b := w.journal.batches[0]
			if len(b.Records) != 1 || !reflect.DeepEqual(b.Records[0], Record{r.Key, r.Value}) {
				t.Errorf("wrote\n%x\nKafka wrote\n%x\n%x", b.Records, r.Key, r.Value)
			}
			if sequence := h.BaseSequence() == 0; b.Commit != sequence || b.Transactional != h.Transactional() ||
				b.ProducerID != h.ProducerID() || b.ProducerEpoch != h.ProducerEpoch() {
				t.Errorf("batch %+v, Kafka's has base sequence %d and producer %d", b.Batch, h.BaseSequence(), h.ProducerID())
			}
		})
	}
}

// flexible appends to a record of a flexible version.
type flexible []byte

func (f flexible) str(s string) flexible { return append(append(f, byte(len(s)+1)), s...) }

// decoderRecords are records of all versions, and some that are hard to print.
func decoderRecords() []Record {
	text := func(s string) *string { return &s }
	consumer := appendInt16(nil, 1)
	consumer = appendString(appendInt32(consumer, 1), "tö")
	consumer = appendBytes(consumer, []byte{1, 2, 3, 255})
	consumer = appendInt32(consumer, 1)
	consumer = appendInt32(appendInt32(appendString(consumer, "t"), 1), 7)
	newer := appendInt16(nil, 9)
	newer = appendInt32(appendInt32(appendInt32(newer, 0), -1), 0)
	newer = appendString(appendInt32(newer, 5), "rack")
	assigned := appendInt32(appendInt32(appendInt16(nil, 0), 0), -1)
	key := func(version int16) []byte { return Key{version, OffsetKey, "g", "t", 3}.AppendTo(nil) }
	groupKey := Key{Version: 2, Kind: GroupKey, Group: "g\"\\\n\x01é😀\u007f/"}.AppendTo(nil)
	member := MemberValue{"m", text("i"), "c", "/::1", 10, -1, consumer, assigned}
	other := MemberValue{"n", nil, "", "", 1, 2, []byte("?"), nil}
	third := MemberValue{"o", nil, "", "", 1, 2, newer, []byte{0, 0, 0}}
	var records []Record
	for v := range int16(4) {
		records = append(records, Record{key(v % 2), OffsetValue{v, 1 << 40, 5, "note\t\b\f\r", 17, 99}.AppendTo(nil)})
		g := GroupValue{v, "consumer", 7, text("range"), text("m"), 1234, []MemberValue{member, other, third}}
		records = append(records, Record{groupKey, g.AppendTo(nil)})
		g = GroupValue{v, "connect", -1, nil, nil, -1, []MemberValue{member, other}}
		records = append(records, Record{groupKey, g.AppendTo(nil)})
	}
	offset := flexible(appendInt32(appendInt64(appendInt16(nil, 4), 12), 3)).str("flexible")
	offset = append(appendInt64(offset, 55), 1, 9, 2, 'x', 'y') // with a tagged field nobody knows
	records = append(records, Record{key(1), offset})
	group := flexible(appendInt16(nil, 4)).str("consumer")
	group = append(appendInt32(group, 3), 0, 0)
	group = append(appendInt64(group, 77), 2)
	group = append(group.str("m"), 0).str("client").str("/host")
	group = appendInt32(appendInt32(group, 1), 2)
	group = append(group, byte(len(assigned)+1))
	group = append(append(group, assigned...), 1, 0, 0)
	return append(records, Record{groupKey, group}, Record{groupKey, nil}, Record{key(0), nil})
}

// TestDecoderMatchesKafka prints records as Kafka's tool prints them. With -update it writes the log for that tool.
func TestDecoderMatchesKafka(t *testing.T) {
	if *update {
		b := batch.NewBuilder(batch.None)
		for _, r := range decoderRecords() {
			b.Add(1, r.Key, r.Value)
		}
		if err := os.WriteFile("testdata/golden/decoder.log", b.AppendTo(nil), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile("testdata/golden/decoder.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := dumped.FindAllStringSubmatch(string(text), -1)
	records := decoderRecords()
	if len(lines) != len(records) {
		t.Fatalf("%d records, %d printed", len(records), len(lines))
	}
	for i, r := range records {
		k, err := DecodeKey(r.Key)
		if err != nil {
			t.Fatal(err)
		}
		value := "<DELETE>"
		if r.Value != nil {
			_, value = reencodeAny(t, k, r.Value)
		}
		if k.String() != lines[i][2] || value != lines[i][3] {
			t.Errorf("record %d prints\n%s\n%s\nKafka prints\n%s\n%s", i, k, value, lines[i][2], lines[i][3])
		}
	}
}

func reencodeAny(t testing.TB, k Key, b []byte) ([]byte, string) {
	if b[1] > 3 { // flexible versions are read and not written
		if k.Kind == OffsetKey {
			v, err := DecodeOffset(b)
			if err != nil {
				t.Fatal(err)
			}
			return nil, v.String()
		}
		v, err := DecodeGroup(b)
		if err != nil {
			t.Fatal(err)
		}
		return nil, v.String()
	}
	return reencode(t, k, b)
}

// TestRecordsOfOtherProtocolsAreSkipped: keys of KIP-848 and later do not disturb a load.
func TestRecordsOfOtherProtocolsAreSkipped(t *testing.T) {
	s := newLoading(1)
	for version := int16(3); version < 20; version++ {
		if err := s.Replay(Entry{Key: appendString(appendInt16(nil, version), "g"), Value: []byte{0}}); !errors.Is(err, ErrUnknownKey) {
			t.Errorf("version %d: %v", version, err)
		}
	}
	for _, e := range []Entry{{Key: nil, Value: []byte("hello")}, {Key: []byte("hello")}, {Key: []byte{0, 1, 0, 5, 'x'}},
		{Key: Key{1, OffsetKey, "g", "t", 1}.AppendTo(nil), Value: []byte{0, 9, 0, 0}}} {
		if err := s.Replay(e); err == nil {
			t.Errorf("%x=%x is taken", e.Key, e.Value)
		}
	}
	if s.Loaded(0, Now{}); s.Groups() != 0 {
		t.Errorf("%d groups", s.Groups())
	}
	if err := s.Verify(); err != nil {
		t.Error(err)
	}
}

func newLoading(seed uint64) *Shard {
	s := NewShard(0, defaults(), &list{}, rand.New(rand.NewPCG(seed, 0)))
	s.BeginLoad(0)
	return s
}

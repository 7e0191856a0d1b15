package segment

import (
	"bytes"
	"encoding/binary"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kring/wire/batch"
)

var update = flag.Bool("update", false, "write the files made for kafka-dump-log anew")

// madeDir holds a partition made to show what a dump can print; see the README in it.
const madeDir = "testdata/dump/made-0"

const madeTime = int64(1_700_000_000_000)

// made is that partition, by file.
func made() map[string][]byte {
	first, ends := madeLog()
	files := map[string][]byte{fileName(0, logSuffix): first}
	var x offsetIndex
	var times timeIndex
	for i, end := range ends {
		if i > 0 {
			x = x.add(int32(end.last), int32(end.at))
		}
		if end.time > times.lastTime() {
			times = times.add(end.time, int32(end.last))
		}
	}
	files[fileName(0, indexSuffix)] = append(bytes.Clone(x), make([]byte, 5*indexEntry)...) // as preallocated
	files[fileName(0, timeSuffix)] = append(bytes.Clone(times), make([]byte, 5*timeEntry)...)
	aborted := txnIndex(nil).add(AbortedTxn{ProducerID: 7, First: 3, Last: 9, LastStable: 10})
	files[fileName(0, txnSuffix)] = aborted.add(AbortedTxn{ProducerID: 1 << 40, First: 11, Last: 12, LastStable: 12})

	// Another segment, whose indexes are wrong in every way.
	var log []byte
	wrong, wrongTimes := offsetIndex(nil), timeIndex(nil)
	for i := range int64(8) {
		b := batch.NewBuilder(batch.None)
		b.BaseOffset = 1000 + 2*i
		b.Add(madeTime+10*i, []byte{byte('a' + i)}, nil)
		b.Add(madeTime+10*i+1, nil, []byte("b"))
		relative := int32(2*i + 1)
		if i == 2 || i == 5 {
			relative-- // no batch ends there
		}
		if i > 0 {
			wrong = wrong.add(relative, int32(len(log)))
		}
		ms := madeTime + 10*i + 1
		if i == 1 || i == 4 {
			ms += 3
		}
		if i == 3 || i == 6 {
			ms -= 25
		}
		wrongTimes = binary.BigEndian.AppendUint64(wrongTimes, uint64(ms))
		wrongTimes = binary.BigEndian.AppendUint32(wrongTimes, uint32(relative))
		log = b.AppendTo(log)
	}
	files[fileName(1000, logSuffix)] = log
	files[fileName(1000, indexSuffix)] = wrong
	files[fileName(1000, timeSuffix)] = wrongTimes
	files[fileName(2000, logSuffix)] = nil
	files[fileName(2000, indexSuffix)] = nil
	files[fileName(2000, timeSuffix)] = nil

	files[fileName(1000, snapshotSuffix)] = madeSnapshot()
	damaged := madeSnapshot()
	damaged[20]++
	files[fileName(1001, snapshotSuffix)] = damaged
	later := madeSnapshot()
	later[1] = 2
	files[fileName(1002, snapshotSuffix)] = later
	files["leader.epochs"] = []byte("0\n0\n")
	return files
}

func (x timeIndex) lastTime() int64 { ms, _ := x.last(); return ms }

func madeSnapshot() []byte {
	ps := &producers{byID: map[int64]*producer{}}
	for i, id := range []int64{0, 7, 1 << 40} {
		p := newProducer(id)
		p.epoch, p.coordinatorEpoch, p.timestamp = int16(i), int32(5*i-5), madeTime+int64(i)
		if i > 0 {
			p.n, p.batches[0] = 1, producerBatch{lastSeq: int32(i), last: Offset(10 * i), delta: 1, timestamp: p.timestamp}
			p.txnFirst = Offset(10*i - 1)
		}
		ps.byID[id] = p
	}
	return encodeSnapshot(ps)
}

type madeEnd struct{ at, last, time int64 }

// madeLog has a batch of every kind, and where each one begins and ends.
func madeLog() (log []byte, ends []madeEnd) {
	next := int64(0)
	put := func(b []byte, offsets int64) {
		last := next + offsets - 1
		if header(b).isV2() {
			batch.Stamp(b, next, 3)
		}
		next = last + 1
		ends = append(ends, madeEnd{int64(len(log)), last, header(b).maxTime()})
		log = append(log, b...)
	}
	fill := func(b *batch.Builder) []byte {
		b.Add(madeTime+3, []byte("key"), []byte("value"))
		b.Add(madeTime+1, nil, []byte("no key"), batch.RecordHeader{Key: "one"}, batch.RecordHeader{Key: "zwei ü", Value: []byte("x")})
		b.Add(madeTime+2, []byte{}, nil)
		b.Add(madeTime, []byte("\xff\xc3\x28 \xf0\x9f\x98"), []byte("two\nlines \xe2\x82\xac\xed\xa0\x80 \U0001f600\x00"))
		return b.AppendTo(nil)
	}
	for codec := batch.None; codec <= batch.Zstd; codec++ {
		put(fill(batch.NewBuilder(codec)), 4)
	}
	stamped := fill(batch.NewBuilder(batch.None))
	batch.StampAppendTime(stamped, madeTime+50)
	put(stamped, 4)

	txn := batch.NewBuilder(batch.LZ4)
	txn.ProducerID, txn.ProducerEpoch, txn.BaseSequence, txn.Transactional = 1<<40, 32767, 1<<31-2, true
	put(fill(txn), 4)
	marker := func(kind byte, value ...byte) {
		c := batch.NewBuilder(batch.None)
		c.ProducerID, c.ProducerEpoch, c.Transactional, c.Control = 7, 1, kind < 2, true
		c.Add(madeTime+60, []byte{0, 0, 0, kind}, value)
		put(c.AppendTo(nil), 1)
	}
	marker(0, 0, 0, 0, 0, 0, 12)
	marker(1, 0, 0, 0x7f, 0xff, 0xff, 0xff)
	marker(2, 0, 0)
	marker(9, 1)

	var r batch.Rewriter
	src := fill(batch.NewBuilder(batch.Gzip))
	r.Begin(batch.Header(src), madeTime+1_000_000)
	records, err := batch.Open(src, 1<<20)
	if err != nil {
		panic(err)
	}
	for i := 0; records.Next(); i++ {
		if i%2 == 1 {
			r.Keep(&records.Record)
		}
	}
	put(r.AppendTo(nil, new(batch.Codecs)), 4)
	txn.Reset()
	put(batch.AppendEmpty(nil, batch.Header(fill(txn))), 4)
	gaps := batch.NewBuilder(batch.None)
	gaps.AddAt(0, madeTime, nil, []byte("a"))
	gaps.AddAt(3, madeTime, nil, []byte("b"))
	put(gaps.AppendTo(nil), 4)
	flipped := fill(batch.NewBuilder(batch.None))
	flipped[len(flipped)-2] ^= 1
	put(flipped, 4)
	for _, old := range madeLegacy(next) {
		put(old.bytes, old.offsets)
	}
	return log, ends
}

type legacyMessage struct {
	bytes   []byte
	offsets int64
}

// madeLegacy are messages of the formats before batches, alone and compressed.
func madeLegacy(next int64) (list []legacyMessage) {
	for _, magic := range []byte{0, 1} {
		for _, codec := range []batch.Codec{batch.None, batch.Gzip} {
			stub := make(batch.Legacy, 34)
			stub[16] = magic
			stub[17] = byte(codec)
			binary.BigEndian.PutUint64(stub[18:], uint64(madeTime))
			kept := []batch.Record{{Offset: next, Timestamp: madeTime + 70, Key: []byte("old"), Value: []byte("message")}}
			if codec != batch.None {
				kept = append(kept, batch.Record{Offset: next + 1, Timestamp: madeTime + 71, Value: []byte("another")})
			}
			message := batch.Legacy(batch.AppendLegacy(nil, stub, kept, new(batch.Codecs)))
			if codec == batch.None {
				_, message, _ = message.Fields() // which is the message itself
				binary.BigEndian.PutUint64(message, uint64(next))
			}
			list = append(list, legacyMessage{message, int64(len(kept))})
			next += int64(len(kept))
		}
	}
	return list
}

// madeNames are the files in the order in which they are dumped.
func madeNames(t testing.TB) []string {
	t.Helper()
	names, err := filepath.Glob(madeDir + "/*.*")
	if err != nil || len(names) < 10 {
		t.Fatalf("%d files in %s: %v", len(names), madeDir, err)
	}
	return names
}

// The files that Kafka's tool has printed are those of made.
func TestMadeFilesAreTheseOnDisk(t *testing.T) {
	for name, b := range made() {
		file := filepath.Join(madeDir, name)
		if *update {
			if err := os.WriteFile(file, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, b) {
			t.Errorf("%s: %v, %d bytes, made are %d; -update writes it", strings.TrimPrefix(file, madeDir), err, len(got), len(b))
		}
	}
}

// Every option prints what Kafka's tool prints, to the same output. Of a bad snapshot we tell the file's name besides.
func TestDumpOfMadeFilesIsKafkas(t *testing.T) {
	for _, c := range []struct {
		name string
		o    DumpOptions
	}{
		{"plain", DumpOptions{}},
		{"data", DumpOptions{PrintDataLog: true}},
		{"deep", DumpOptions{DeepIteration: true}},
		{"skip", DumpOptions{PrintDataLog: true, SkipMetadata: true}},
		{"max", DumpOptions{DeepIteration: true, MaxBytes: 700}},
		{"verify", DumpOptions{VerifyIndexOnly: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := map[string][]byte{}
			var names []string
			for _, file := range madeNames(t) {
				b, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, filepath.Base(file))
				files[filepath.Base(file)] = b
			}
			var out, problems bytes.Buffer
			c.o.Open = opener(files)
			if err := Dump(&out, &problems, names, c.o); err != nil {
				t.Fatal(err)
			}
			sameLines(t, out.String(), "testdata/dump/"+c.name+".txt")
			told := strings.NewReplacer(
				fileName(1001, snapshotSuffix)+": malformed file: snapshot checksum is wrong",
				"Snapshot is corrupt (CRC is no longer valid). Stored crc: 3852523525. Computed crc: 392207724",
				fileName(1002, snapshotSuffix)+": malformed file: snapshot version 2",
				"Snapshot contained an unknown file version 2").Replace(problems.String())
			sameLines(t, told, "testdata/dump/"+c.name+".problems.txt")
		})
	}
}

func sameLines(t *testing.T, got, file string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(string(b), "\n")
	for i, line := range strings.Split(got, "\n") {
		if i >= len(want) || line != want[i] {
			t.Fatalf("%s line %d:\n%q\nKafka:\n%q", file, i+1, line, append(want, "(the end)")[min(i, len(want))])
		}
	}
	if n := strings.Count(got, "\n"); n != len(want)-1 {
		t.Errorf("%s: %d lines, Kafka has %d", file, n, len(want)-1)
	}
}

package segment

import (
	"bufio"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"kring/wire/batch"
)

// dumpBatchMax bounds a batch, as it lies on file and decompressed, that is looked into.
const dumpBatchMax = 256 << 20

// DumpOptions are those of kafka-dump-log.
type DumpOptions struct {
	// PrintDataLog prints every record, with key and value as text.
	PrintDataLog bool
	// DeepIteration prints every record without them.
	DeepIteration bool
	// IndexSanity only checks the indexes, without looking at the log.
	IndexSanity bool
	// VerifyIndexOnly prints only what is wrong with an index.
	VerifyIndexOnly bool
	// SkipMetadata leaves out all but key and value of a record.
	SkipMetadata bool
	// MaxBytes ends each log before the batch that goes beyond so many bytes; 0: at its end.
	MaxBytes int64
	// Parser gives what makes text of the keys and values of a file's records, for PrintDataLog; nil where they are text. An empty
	// payload is left out.
	Parser func(file string) Parser
	// Key and Value make text of the others; nil: as UTF-8.
	Key, Value func([]byte) string
	// Open gives a file by name and its size; if it is an io.Closer it is closed again.
	Open func(name string) (io.ReaderAt, int64, error)
}

// Parser makes text of a record's key and value.
type Parser func(offset int64, key, value []byte) (keyText, payload string)

// Dump prints .log, .index, .timeindex, .txnindex and .snapshot files as Kafka's DumpLogSegments does: what they hold to out, and
// what is wrong with them to problems. An error means that a file could not be read.
func Dump(out, problems io.Writer, files []string, o DumpOptions) error {
	d := &dumper{w: bufio.NewWriterSize(out, 64<<10), problems: problems, o: o}
	var failed error
	for _, name := range files {
		fmt.Fprintf(d.w, "Dumping %s\n", name)
		if err := d.file(name); err != nil {
			failed = fmt.Errorf("%s: %w", name, err)
			break
		}
	}
	if err := d.w.Flush(); failed == nil {
		failed = err
	}
	for _, kind := range d.found {
		for _, line := range kind {
			fmt.Fprintln(d.problems, line)
		}
	}
	return failed
}

type dumper struct {
	w        *bufio.Writer
	problems io.Writer
	o        DumpOptions
	found    [dumpKinds][]string // told after all files
	parse    Parser              // of the file at hand
}

// What is wrong, in the order in which it is told.
const (
	indexMismatch = iota
	timeMismatch
	timeOrder
	timeWithoutBatch
	offsetGap
	dumpKinds
)

// say tells at once.
func (d *dumper) say(format string, args ...any) {
	d.w.Flush()
	fmt.Fprintf(d.problems, format+"\n", args...)
}

// tell keeps what is wrong with one file until all are dumped.
func (d *dumper) tell(kind int, title string, lines []string) {
	if len(lines) > 0 {
		d.found[kind] = append(append(d.found[kind], title), lines...)
	}
}

// dumpFile is a file being read.
type dumpFile struct {
	name string
	r    io.ReaderAt
	size int64
}

func (d *dumper) open(name string) (*dumpFile, error) {
	r, size, err := d.o.Open(name)
	if err != nil {
		return nil, err
	}
	return &dumpFile{name, r, size}, nil
}

func (f *dumpFile) close() {
	if c, ok := f.r.(io.Closer); ok {
		c.Close()
	}
}

// at reads n bytes, fewer at the end.
func (f *dumpFile) at(pos, n int64) ([]byte, error) {
	if pos < 0 || pos >= f.size {
		return nil, nil
	}
	b := make([]byte, min(n, f.size-pos))
	got, err := f.r.ReadAt(b, pos)
	if err == io.EOF {
		err = nil
	}
	return b[:got], err
}

// all reads a whole small file.
func (f *dumpFile) all() ([]byte, error) {
	if f.size > dumpBatchMax {
		return nil, fmt.Errorf("%w: %d bytes", ErrMalformed, f.size)
	}
	return f.at(0, f.size)
}

// header reads that of the batch at pos; nil if there is no whole batch.
func (f *dumpFile) header(pos int64) (header, error) {
	b, err := f.at(pos, batch.HeaderSize)
	if err != nil {
		return nil, err
	}
	size, err := batch.Next(b)
	if err != nil || pos+int64(size) > f.size || len(b) < header(b).need() {
		return nil, nil
	}
	return b, nil
}

func (d *dumper) file(name string) error {
	base, suffix, ok := parseName(path.Base(name))
	if !ok || !strings.Contains(logSuffix+indexSuffix+timeSuffix+txnSuffix+snapshotSuffix+".", suffix+".") {
		d.say("Ignoring unknown file %s", name)
		return nil
	}
	f, err := d.open(name)
	if err != nil {
		return err
	}
	defer f.close()
	switch suffix {
	case logSuffix:
		if d.parse = nil; d.o.Parser != nil {
			d.parse = d.o.Parser(name)
		}
		return d.log(f, base)
	case indexSuffix:
		return d.index(f, base)
	case timeSuffix:
		return d.times(f, base)
	case txnSuffix:
		return d.txns(f, base)
	}
	return d.snapshot(f)
}

func (d *dumper) log(f *dumpFile, base Offset) error {
	fmt.Fprintf(d.w, "Log starting offset: %d\n", base)
	pos, last := int64(0), int64(-1)
	whole := f.size
	if d.o.MaxBytes > 0 {
		f.size = min(f.size, d.o.MaxBytes)
	}
	var gaps []string
	for {
		h, err := f.header(pos)
		if err != nil {
			return err
		}
		if h == nil {
			break
		}
		if h.size() > dumpBatchMax {
			return fmt.Errorf("%w: a batch of %d bytes at position %d", ErrMalformed, h.size(), pos)
		}
		b, err := f.at(pos, h.size())
		if err != nil {
			return err
		}
		d.batch(b, pos)
		if d.o.PrintDataLog || d.o.DeepIteration {
			gaps = d.records(b, &last, gaps)
		}
		pos += h.size()
	}
	if pos < whole && d.o.MaxBytes <= 0 {
		fmt.Fprintf(d.w, "Found %d invalid bytes at the end of %s\n", whole-pos, path.Base(f.name))
	}
	slices.Reverse(gaps) // Kafka's tool tells the last one first
	d.tell(offsetGap, "Non-consecutive offsets in "+f.name, gaps)
	return nil
}

// batch prints the line of one batch.
func (d *dumper) batch(b []byte, pos int64) {
	h := header(b)
	v := h.v2()
	kind, crc := "CreateTime", uint32(0)
	codec := batch.None
	if h.isV2() {
		horizon := "OptionalLong.empty"
		if v.DeleteHorizon() {
			horizon = fmt.Sprintf("OptionalLong[%d]", v.BaseTimestamp())
		}
		fmt.Fprintf(d.w, "baseOffset: %d lastOffset: %d count: %d baseSequence: %d lastSequence: %d producerId: %d producerEpoch: %d "+
			"partitionLeaderEpoch: %d isTransactional: %v isControl: %v deleteHorizonMs: %s", v.BaseOffset(), v.LastOffset(), v.Count(),
			v.BaseSequence(), v.LastSequence(), v.ProducerID(), v.ProducerEpoch(), v.LeaderEpoch(), v.Transactional(), v.Control(), horizon)
		codec, crc = v.Codec(), v.CRC()
	} else {
		old := batch.Legacy(b)
		fmt.Fprintf(d.w, "offset: %d", h.last())
		codec, crc = old.Codec(), uint32(v.LeaderEpoch())
		if v.Magic() == 0 {
			kind = "NoTimestampType"
		}
	}
	if isAppendTime(b) {
		kind = "LogAppendTime"
	}
	fmt.Fprintf(d.w, " position: %d %s: %d size: %d magic: %d compresscodec: %s crc: %d isvalid: %v\n", pos, kind, h.maxTime(), h.size(),
		v.Magic(), codec, crc, batch.Verify(b) == nil)
}

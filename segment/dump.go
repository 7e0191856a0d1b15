package segment

import (
	"bufio"
	"fmt"
	"io"
	"path"
	"strings"
	"unicode/utf8"

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
	// Parser gives what makes text of the keys and values of a file's records, for PrintDataLog; nil where they are text. An empty
	// payload is left out.
	Parser func(file string) Parser
	// Open gives a file by name and its size; if it is an io.Closer it is closed again.
	Open func(name string) (io.ReaderAt, int64, error)
}

// Parser makes text of a record's key and value.
type Parser func(offset int64, key, value []byte) (keyText, payload string)

// Dump prints .log, .index, .timeindex, .txnindex and .snapshot files as Kafka's DumpLogSegments does. What is wrong with
// a file is part of the output; an error means that a file could not be read.
func Dump(w io.Writer, files []string, o DumpOptions) error {
	d := &dumper{w: bufio.NewWriter(w), o: o}
	var failed error
	for _, name := range files {
		fmt.Fprintf(d.w, "Dumping %s\n", name)
		if err := d.file(name); err != nil {
			failed = fmt.Errorf("%s: %w", name, err)
			break
		}
	}
	for _, p := range d.problems {
		fmt.Fprintln(d.w, p)
	}
	if err := d.w.Flush(); failed == nil {
		failed = err
	}
	return failed
}

type dumper struct {
	w        *bufio.Writer
	o        DumpOptions
	problems []string // told after all files
	parse    Parser   // of the file at hand
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
		d.problems = append(d.problems, "Ignoring unknown file "+name)
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
		whole, err := f.at(pos, h.size())
		if err != nil {
			return err
		}
		d.batch(whole, pos)
		if d.o.PrintDataLog || d.o.DeepIteration {
			gaps = d.records(whole, &last, gaps)
		}
		pos += h.size()
	}
	if pos < f.size {
		fmt.Fprintf(d.w, "Found %d invalid bytes at the end of %s\n", f.size-pos, path.Base(f.name))
	}
	if len(gaps) > 0 {
		d.problems = append(append(d.problems, "Non-consecutive offsets in "+f.name), gaps...)
	}
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

func isAppendTime(b []byte) bool {
	h := header(b)
	if h.isV2() {
		return h.v2().LogAppendTime()
	}
	return h.v2().Magic() == 1 && batch.Legacy(b).LogAppendTime()
}

// records prints a line for each record of a batch and collects gaps between offsets.
func (d *dumper) records(b []byte, last *int64, gaps []string) []string {
	h := header(b)
	kind := "CreateTime"
	if isAppendTime(b) {
		kind = "LogAppendTime"
	} else if h.v2().Magic() == 0 {
		kind = "NoTimestampType"
	}
	records, err := batch.Open(b, dumpBatchMax)
	if err != nil {
		fmt.Fprintf(d.w, "| the records cannot be read: %v\n", err)
		return gaps
	}
	for records.Next() {
		r := &records.Record
		if *last >= 0 && r.Offset != *last+1 {
			gaps = append(gaps, fmt.Sprintf("  %d is followed by %d", *last, r.Offset))
		}
		*last = r.Offset
		fmt.Fprintf(d.w, "| offset: %d %s: %d keySize: %d valueSize: %d", r.Offset, kind, r.Timestamp, sizeOf(r.Key), sizeOf(r.Value))
		if h.isV2() {
			v := h.v2()
			seq := int32(noSequence)
			if v.BaseSequence() >= 0 {
				seq = batch.AddSequence(v.BaseSequence(), int32(r.Offset-v.BaseOffset()))
			}
			fmt.Fprintf(d.w, " sequence: %d headerKeys: [", seq)
			n := 0
			for key := range r.Headers() {
				if n++; n > 1 {
					d.w.WriteByte(',')
				}
				d.w.WriteString(text(key))
			}
			d.w.WriteByte(']')
			if v.Control() {
				d.control(b)
			}
		}
		if d.o.PrintDataLog && !(h.isV2() && h.v2().Control()) {
			d.data(r)
		}
		d.w.WriteByte('\n')
	}
	if records.Err != nil {
		fmt.Fprintf(d.w, "| the records cannot be read on: %v\n", records.Err)
	}
	return gaps
}

// data prints a record's key and value.
func (d *dumper) data(r *batch.Record) {
	if d.parse != nil && r.Key != nil {
		key, payload := d.parse(r.Offset, r.Key, r.Value)
		if fmt.Fprintf(d.w, " key: %s", key); payload != "" {
			fmt.Fprintf(d.w, " payload: %s", payload)
		}
		return
	}
	if r.Key != nil {
		fmt.Fprintf(d.w, " key: %s", text(r.Key))
	}
	if r.Value != nil {
		fmt.Fprintf(d.w, " payload: %s", text(r.Value))
	}
}

func (d *dumper) control(b []byte) {
	commit, epoch, ok := endMarker(b)
	switch {
	case !ok:
		fmt.Fprint(d.w, " controlType: UNKNOWN")
	case commit:
		fmt.Fprintf(d.w, " endTxnMarker: COMMIT coordinatorEpoch: %d", epoch)
	default:
		fmt.Fprintf(d.w, " endTxnMarker: ABORT coordinatorEpoch: %d", epoch)
	}
}

func sizeOf(b []byte) int {
	if b == nil {
		return -1
	}
	return len(b)
}

// text is b as Java decodes it: every malformed sequence becomes one replacement character.
func text(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var s strings.Builder
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			n = malformed(b)
		}
		s.WriteRune(r)
		b = b[n:]
	}
	return s.String()
}

// malformed is how many bytes at the start of b begin a character and do not end it.
func malformed(b []byte) int {
	n := 1
	for n < len(b) && n < 4 && !utf8.FullRune(b[:n]) && b[n]&0xc0 == 0x80 {
		n++
	}
	if n > 1 && utf8.FullRune(b[:n]) { // the last one made it wrong, or is not part of it
		n--
	}
	return n
}

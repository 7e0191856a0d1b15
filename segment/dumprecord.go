package segment

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"

	"kring/wire/batch"
)

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
	records, err := batch.Open(b, dumpBatchMax)
	if err != nil {
		fmt.Fprintf(d.w, "| the records cannot be read: %v\n", err)
		return gaps
	}
	control := h.isV2() && h.v2().Control()
	for records.Next() {
		r := &records.Record
		if *last >= 0 && r.Offset != *last+1 {
			gaps = append(gaps, fmt.Sprintf("  %d is followed by %d", *last, r.Offset))
		}
		*last = r.Offset
		begin := "| "
		if !d.o.SkipMetadata {
			d.metadata(b, &records, control)
			begin = " "
		}
		if d.o.PrintDataLog && !control {
			d.data(begin, r)
		}
		d.w.WriteByte('\n')
	}
	if records.Err != nil {
		fmt.Fprintf(d.w, "| the records cannot be read on: %v\n", records.Err)
	}
	return gaps
}

// metadata prints what is told of a record besides key and value.
func (d *dumper) metadata(b []byte, records *batch.Records, control bool) {
	h, r := header(b), &records.Record
	kind := "CreateTime"
	if isAppendTime(b) {
		kind = "LogAppendTime"
	} else if h.v2().Magic() == 0 {
		kind = "NoTimestampType"
	}
	fmt.Fprintf(d.w, "| offset: %d %s: %d keySize: %d valueSize: %d", r.Offset, kind, r.Timestamp, sizeOf(r.Key), sizeOf(r.Value))
	if m := records.Message(); m != nil {
		fmt.Fprintf(d.w, " isValid: %v crc: %d}", m.Valid(), uint32(batch.Header(m).LeaderEpoch())) // the brace is Kafka's
		return
	}
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
	if control {
		d.control(b, r.Key)
	}
}

// data prints a record's key and value; begin stands before a key.
func (d *dumper) data(begin string, r *batch.Record) {
	if d.parse != nil && r.Key != nil {
		key, payload := d.parse(r.Offset, r.Key, r.Value)
		if fmt.Fprintf(d.w, "%skey: %s", begin, key); payload != "" {
			fmt.Fprintf(d.w, " payload: %s", payload)
		}
		return
	}
	if r.Key != nil {
		fmt.Fprintf(d.w, "%skey: %s", begin, decoded(d.o.Key, r.Key))
	}
	if r.Value != nil {
		fmt.Fprintf(d.w, " payload: %s", decoded(d.o.Value, r.Value))
	}
}

func decoded(by func([]byte) string, b []byte) string {
	if by == nil {
		return text(b)
	}
	return by(b)
}

// control prints what a control record means; those of the quorum's log are named, not taken apart.
func (d *dumper) control(b, key []byte) {
	commit, epoch, ok := endMarker(b)
	switch {
	case ok && commit:
		fmt.Fprintf(d.w, " endTxnMarker: COMMIT coordinatorEpoch: %d", epoch)
	case ok:
		fmt.Fprintf(d.w, " endTxnMarker: ABORT coordinatorEpoch: %d", epoch)
	case len(key) < 4:
		fmt.Fprint(d.w, " controlType: UNKNOWN")
	default:
		kind := int16(binary.BigEndian.Uint16(key[2:]))
		name := "UNKNOWN"
		if kind >= 0 && int(kind) < len(controlTypes) {
			name = controlTypes[kind]
		}
		fmt.Fprintf(d.w, " controlType: %s(%d)", name, kind)
	}
}

// controlTypes are Kafka's names of the kinds of control records.
var controlTypes = [...]string{"ABORT", "COMMIT", "LEADER_CHANGE", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER", "KRAFT_VERSION", "KRAFT_VOTERS"}

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
	if b[0] == 0xed { // half of a surrogate pair: its bytes go together
		for n < min(len(b), 3) && b[n]&0xc0 == 0x80 {
			n++
		}
		return n
	}
	for n < len(b) && n < 4 && !utf8.FullRune(b[:n]) && b[n]&0xc0 == 0x80 {
		n++
	}
	if n > 1 && utf8.FullRune(b[:n]) { // the last one made it wrong, or is not part of it
		n--
	}
	return n
}

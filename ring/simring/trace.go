package simring

import (
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
)

// trace digests everything that happens: kinds, numbers and contents. Lengths alone are not enough: two runs
// that differ only in the bytes they wrote must differ in the digest.
type trace struct {
	sum uint64
	log io.Writer
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (t *trace) number(n uint64) {
	t.sum = bits.RotateLeft64((t.sum^n)*0x9e3779b97f4a7c15, 29)
}

func (t *trace) bytes(b []byte) {
	t.number(uint64(len(b))<<32 | uint64(crc32.Checksum(b, castagnoli)))
}

func (t *trace) text(s string) {
	t.number(uint64(len(s)))
	for i := 0; i < len(s); i++ {
		t.sum = (t.sum ^ uint64(s[i])) * 0x100000001b3
	}
}

// Trace is the digest of the run so far: equal seeds and equal code give equal digests.
func (w *World) Trace() uint64 { return w.trace.sum }

// note digests one event and writes its line.
func (w *World) note(who, what, name string, at, n int64, content []byte, err error) {
	t := &w.trace
	t.number(uint64(w.now))
	t.text(who)
	t.text(what)
	t.text(name)
	t.number(uint64(at))
	t.number(uint64(n))
	t.bytes(content)
	if err != nil {
		t.text(err.Error())
	}
	if t.log == nil {
		return
	}
	detail := ""
	if at != 0 || n != 0 {
		detail = fmt.Sprintf("@%d +%d", at, n)
	}
	if err != nil {
		detail += "  ! " + err.Error()
	}
	fmt.Fprintf(t.log, "%13.6f  %-10s %-9s %s %s\n", w.now.Seconds(), who, what, name, detail)
}

// Say writes a line of the test's own into the story and the digest.
func (w *World) Say(who, format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	w.note(who, "--", s, 0, 0, nil, nil)
}

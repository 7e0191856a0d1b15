package sim

import (
	"strings"
	"testing"

	"kring/ring/simring"
)

// TestCheckersSeeWhatIsWrong feeds the checkers histories that break one promise each.
func TestCheckersSeeWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		says string
		do   func(p *partition, r []*record)
	}{
		{"", func(p *partition, r []*record) {
			p.ack(0, r[:2])
			p.got(0, "a")
			p.started(3, false)
			p.whole(0, []string{"a", "b", "c"})
		}},
		{"was acknowledged for \"a\" and for \"b\"", func(p *partition, r []*record) { p.ack(0, r[:1]); p.ack(0, r[1:2]) }},
		{"at offset 0 and at 7", func(p *partition, r []*record) { p.ack(0, r[:1]); p.ack(7, r[:1]) }},
		{"a consumer has read \"b\" there", func(p *partition, r []*record) { p.got(0, "b"); p.ack(0, r[:1]) }},
		{"which nobody has sent", func(p *partition, r []*record) { p.got(0, "x") }},
		{"\"b\" was read there", func(p *partition, r []*record) { p.got(0, "b"); p.got(0, "a") }},
		{"\"a\" was acknowledged there", func(p *partition, r []*record) { p.ack(0, r[:1]); p.got(0, "b") }},
		{"record \"b\" at offset 1 is lost", func(p *partition, r []*record) { p.ack(0, r[:2]); p.started(1, false) }},
		{"record \"b\" at offset 1 is lost", func(p *partition, r []*record) { p.durable = true; p.ack(0, r[:2]); p.started(1, true) }},
		{"", func(p *partition, r []*record) {
			p.ack(0, r[:2])
			p.got(1, "b")
			p.started(1, true)
			p.whole(0, []string{"a"})
		}},
		{"has been read and is lost", func(p *partition, r []*record) { p.got(1, "b"); p.started(1, false) }},
		{"\"a\" is there twice", func(p *partition, r []*record) { p.whole(0, []string{"a", "b", "a"}) }},
		{"comes behind number 1", func(p *partition, r []*record) { p.whole(0, []string{"b", "a"}) }},
		{"is not at offset 1", func(p *partition, r []*record) { p.ack(0, r[:2]); p.whole(0, []string{"a", "c"}) }},
		{"the log begins at 1", func(p *partition, r []*record) { p.whole(1, []string{"b"}) }},
		{"the log begins at 0", func(p *partition, r []*record) { p.asked, p.start = 2, 1; p.whole(0, []string{"a", "b"}) }},
		{"", func(p *partition, r []*record) { p.ack(0, r[:2]); p.asked = 1; p.whole(1, []string{"b"}) }},
	} {
		s := &Story{w: simring.New(1, simring.Options{})}
		p := &partition{s: s, topic: "t", sent: map[string]*record{}, acked: map[int64]*record{}, read: map[int64]string{}}
		var records []*record
		for i, v := range []string{"a", "b", "c"} {
			r := &record{value: v, number: i, ordered: true, offset: -1}
			p.sent[v] = r
			records = append(records, r)
		}
		c.do(p, records)
		switch {
		case c.says == "" && s.err != nil:
			t.Errorf("a sound history is refused: %v", s.err)
		case c.says != "" && (s.err == nil || !strings.Contains(s.err.Error(), c.says)):
			t.Errorf("%q was expected, and came %v", c.says, s.err)
		}
	}
}

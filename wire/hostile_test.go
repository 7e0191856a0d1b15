package wire

import (
	"testing"
	"time"
)

func TestHotViewsRefuse(t *testing.T) {
	produce9 := func(b ...byte) []byte { return append([]byte{0, 0, 1, 0, 0, 0, 9}, b...) } // no transaction, acks 1, timeout
	produce3 := func(b ...byte) []byte { return append([]byte{255, 255, 0, 1, 0, 0, 0, 9}, b...) }
	fetch12 := func(b ...byte) []byte { return append(make([]byte, 4+4+4+4+1+4+4), b...) }
	for _, c := range []struct {
		name         string
		key, version int16
		body         []byte
		ok           bool
	}{
		{"no topics", Produce, 9, produce9(1, 0), true},
		{"null topics", Produce, 9, produce9(0, 0), false},
		{"2^32-2 topics", Produce, 9, produce9(255, 255, 255, 255, 15, 0), false},
		{"2^31-1 topics", Produce, 3, produce3(0x7f, 255, 255, 255, 0, 0, 0, 0, 0, 0), false},
		{"-2 topics", Produce, 3, produce3(255, 255, 255, 254, 0, 0, 0, 0, 0, 0), false},
		{"null name", Produce, 9, produce9(2, 0, 1, 0, 0), false},
		{"null records", Produce, 9, produce9(2, 2, 't', 2, 0, 0, 0, 0, 0, 0, 0, 0), true},
		{"records over the end", Produce, 9, produce9(2, 2, 't', 2, 0, 0, 0, 0, 99, 0, 0, 0), false},
		{"records of 2^31-1", Produce, 3, produce3(0, 0, 0, 1, 0, 1, 't', 0, 0, 0, 1, 0, 0, 0, 0, 0x7f, 255, 255, 255, 1), false},
		{"2^32-1 tags", Produce, 9, produce9(1, 255, 255, 255, 255, 15), false},
		{"a varint of 34 bits", Produce, 9, produce9(1, 0x80, 0x80, 0x80, 0x80, 0x20), false},
		{"a transactional id of 2^31 bytes", Produce, 9, []byte{129, 128, 128, 128, 8, 0, 1, 0, 0, 0, 9, 1, 0}, false},
		{"varint without end", Produce, 9, produce9(255, 255, 255, 255, 255, 255), false},
		{"a tag over the end", Produce, 9, produce9(1, 1, 0, 5, 0), false},
		{"no tags", Produce, 9, produce9(1), false},
		{"nothing to fetch", Fetch, 12, fetch12(1, 1, 1, 0), true},
		{"null topics", Fetch, 12, fetch12(0, 1, 1, 0), false},
		{"null forgotten topics", Fetch, 12, fetch12(1, 0, 1, 0), false},
		{"null rack", Fetch, 12, fetch12(1, 1, 0, 0), false},
		{"partitions over the end", Fetch, 12, fetch12(2, 2, 't', 3, 0, 0, 0, 0), false},
		{"forgotten partitions over the end", Fetch, 12, fetch12(1, 2, 2, 't', 9, 0, 0, 0, 0, 0, 1, 0), false},
		{"a cluster id", Fetch, 12, fetch12(1, 1, 1, 1, 0, 2, 2, 'c'), true},
		{"a cluster id over its tag", Fetch, 12, fetch12(1, 1, 1, 1, 0, 2, 9, 'c'), false},
		{"a replica state that is too short", Fetch, 15, fetch12(1, 1, 1, 1, 1, 2, 0, 0)[4:], false},
	} {
		var err error
		if c.key == Produce {
			err = new(ProduceRequest).Parse(c.version, c.body)
		} else {
			err = new(FetchRequest).Parse(c.version, c.body)
		}
		if (err == nil) != c.ok || err != nil && err != ErrBody {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestManyEmptyTopics: a body that says as much as it can takes time in proportion.
func TestManyEmptyTopics(t *testing.T) {
	const n = 1 << 20
	body := append([]byte{0, 0, 1, 0, 0, 0, 9, 0x81, 0x80, 0x40}, make([]byte, 3*n+1)...)
	for i := range n {
		body[10+3*i], body[10+3*i+1] = 1, 1
	}
	start := time.Now()
	var p ProduceRequest
	if err := p.Parse(9, body); err != nil || p.Topics != n {
		t.Error(err, p.Topics)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Error(took)
	}
}

package segment

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"testing"

	"kring/ring"
)

// The vectors are those of the authors' reference implementation: key 00 to 0f, inputs "", 00, 00 01 and so on.
func TestKeyHashIsSipHash(t *testing.T) {
	var key, in [64]byte
	for i := range key {
		key[i], in[i] = byte(i), byte(i)
	}
	h := keyHash{binary.LittleEndian.Uint64(key[:]), binary.LittleEndian.Uint64(key[8:])}
	for n, want := range map[int]string{
		0: "a3817f04ba25a8e66df67214c7550293", 1: "da87c1d86b99af44347659119b22fc45", 2: "8177228da4a45dc7fca38bdef60affe4",
		7: "a1f1ebbed8dbc153c0b84aa61ff08239", 8: "3b62a9ba6258f5610f83e264f31497b4", 15: "5493e99933b0a8117e08ec0f97cfc3d9",
	} {
		lo, hi := h.sum(in[:n])
		got := hex.EncodeToString(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, lo), hi))
		if got != want {
			t.Errorf("%d bytes: %s, want %s", n, got, want)
		}
	}
}

// The map finds the last offset of each key, takes no more memory than it may, and says when it is full.
func TestKeyMap(t *testing.T) {
	r := newRig(t, 31)
	for _, memory := range []int64{40_000, 300_000, 3_000_000} {
		r.do("a map", func(*ring.Task) {
			m := newKeyMap(r.loop, memory, 0.9)
			before := r.loop.InUse()
			last := map[string]Offset{}
			full := false
			for o := Offset(0); !full && o < 400_000; o++ {
				key := fmt.Sprintf("key %d", (o*7919)%100_003)
				for !m.put([]byte(key), o) {
					if m.short == nil {
						full = true
						break
					}
					m.supply(r.loop)
					m.grow()
					m.supply(r.loop)
				}
				if !full {
					last[key] = o
				}
			}
			if used := r.loop.InUse() - before; m.memory() > memory || used > memory+64*2*keyParts {
				t.Errorf("%d bytes in use, %d lent of %d", m.memory(), used, memory)
			}
			if wantFull := memory < 3_000_000; full != wantFull {
				t.Errorf("memory %d: full %v with %d keys", memory, full, m.keys)
			}
			if full && float64(m.keys) < 0.55*float64(memory/keyEntry) {
				t.Errorf("full with %d keys in %d bytes", m.keys, memory)
			}
			if m.keys != len(last) {
				t.Errorf("%d keys, want %d", m.keys, len(last))
			}
			for k, o := range last {
				if got := m.get([]byte(k)); got != o {
					t.Fatalf("%s at %d, want %d", k, got, o)
				}
			}
			if got := m.get([]byte("another")); got != -1 {
				t.Errorf("a key that was never put is at %d", got)
			}
			m.release()
			if r.loop.InUse() != before {
				t.Errorf("%d bytes are not given back", r.loop.InUse()-before)
			}
		})
	}
}

func BenchmarkKeyMap(b *testing.B) {
	r := newRig(b, 32)
	m := newKeyMap(r.loop, 128<<20, 0.9)
	keys := make([][]byte, 100_000)
	for i := range keys {
		keys[i] = []byte(fmt.Sprintf("group-%012d-topic", i))
	}
	r.on(func() {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			for !m.put(keys[i%len(keys)], Offset(i)) {
				m.supply(r.loop)
				m.grow()
			}
		}
	})
}

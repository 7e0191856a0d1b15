package segment

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// After a crash the log ends at the first batch that is not whole. If whole batches lie behind it, this was no torn write, or not only:
// their bytes are kept, and who is told by the log hears which they are. A torn end leaves no file.
func TestWholeBatchesBehindDamageAreKept(t *testing.T) {
	const size = 271 // of a batch
	junk := bytes.Repeat([]byte{2, 0, 1, 0xff}, 500)
	for name, c := range map[string]struct {
		damage         func([]byte) []byte
		end            Offset
		from, to, left int
	}{
		"a byte of a record": {func(b []byte) []byte { b[33*size+200] ^= 1; return b }, 33, 33, 39, 6},
		"a length":           {func(b []byte) []byte { b[33*size+8] = 0x7f; return b }, 33, 33, 39, 6},
		"an offset":          {func(b []byte) []byte { b[33*size+6] = 9; return b }, 34, 34, 39, 6}, // no checksum covers it
		"zeros in the midst": {func(b []byte) []byte { clear(b[33*size : 35*size]); return b }, 33, 33, 39, 5},
		"two places":         {func(b []byte) []byte { b[33*size+200] ^= 1; b[37*size+200] ^= 1; return b }, 33, 33, 39, 5},
		"the last batch":     {func(b []byte) []byte { b[39*size+200] ^= 1; return b }, 39, 0, 0, 0},
		"a torn end":         {func(b []byte) []byte { return b[:33*size+100] }, 33, 0, 0, 0},
		"zeros at the end":   {func(b []byte) []byte { clear(b[33*size+70:]); return b }, 33, 0, 0, 0},
		"junk at the end":    {func(b []byte) []byte { return append(b[:33*size], junk...) }, 33, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1)
			o, b := damagedLog(t, r)
			b = c.damage(b)
			r.m.WriteFile(o.Dir+"/"+fileName(0, logSuffix), bytes.Clone(b))
			warned := false
			v := filesOnly(r.snapshotOf(o.Dir), func(f Finding) { warned = warned || f.Do == doBefore })
			if _, err := VerifyPartition(o.Dir, v); err != nil {
				t.Error(err)
			}
			if warned != (c.left > 0) {
				t.Errorf("verify warned of the start: %v", warned)
			}
			said := &strings.Builder{}
			o.Clean, o.RecoveryPoint, o.Log = false, 0, slog.New(slog.NewTextHandler(said, nil))
			l := r.open(o)
			at := int64(c.end) * size
			aside := o.Dir + "/" + asideName(0, at, 0)
			kept, err := r.m.ReadFile(aside)
			switch {
			case c.left == 0 && err == nil:
				t.Errorf("%d bytes are kept of a torn end", len(kept))
			case c.left > 0 && !bytes.Equal(kept, b[at:]):
				t.Errorf("%d bytes are kept of %d, %v", len(kept), int64(len(b))-at, err)
			}
			want := fmt.Sprintf("position=%d cut=%d", at, int64(len(b))-at)
			rest := fmt.Sprintf("from=%d to=%d batches=%d kept=%s", c.from, c.to, c.left, aside)
			if c.left > 0 && !(strings.Contains(said.String(), want) && strings.Contains(said.String(), rest)) {
				t.Errorf("want %s ... %s, said:\n%s", want, rest, said)
			}
			if end, err := r.m.ReadFile(o.Dir + "/" + fileName(0, logSuffix)); err != nil || int64(len(end)) != at {
				t.Errorf("the log is %d bytes long, want %d, %v", len(end), at, err)
			}
			r.close(l)
		})
	}
}

package segment

import (
	"fmt"
	"testing"
)

// TestFiveBatchesAreKnownAfterARestart sends batches whose answers were lost again: after a stop in order and after a crash, the
// snapshot being anywhere among them, each of the last five is known and gets its first offset.
func TestFiveBatchesAreKnownAfterARestart(t *testing.T) {
	for _, stop := range []string{"close", "kill"} {
		for _, between := range []int{0, 1, 200} { // batches of others behind them
			t.Run(fmt.Sprint(stop, " ", between), func(t *testing.T) {
				r := newRig(t, 1)
				o := r.options("/d/t-0")
				o.Config.SegmentBytes = 4000
				o.Config.IndexIntervalBytes = 300
				l := r.open(o)
				bases := map[int32]Offset{}
				for seq := range int32(8) {
					a := r.append(l, produced(7, 0, seq, 1, epoch, false))
					if a.Err != nil {
						t.Fatal(a.Err)
					}
					bases[seq] = a.Base
					for i := range 5 {
						r.append(l, produced(100+int64(i), 0, seq, 1, epoch, false))
					}
				}
				for range between {
					r.append(l, records(1, epoch, "v"))
				}
				if stop == "close" {
					r.close(l)
					o.Clean = true
				} else {
					r.m.Kill()
					r.boot()
					o.Files = r.files
				}
				l = r.open(o)
				for seq := int32(3); seq < 8; seq++ {
					a := r.append(l, produced(7, 0, seq, 1, epoch, false))
					if a.Err != nil || !a.Duplicate || a.Base != bases[seq] {
						t.Errorf("sequence %d sent again: base %d, duplicate %v, %v; it was stored at %d", seq, a.Base, a.Duplicate, a.Err, bases[seq])
					}
				}
				if a := r.append(l, produced(7, 0, 2, 1, epoch, false)); a.Err == nil {
					t.Errorf("the sixth last was taken: %+v", a)
				}
				if a := r.append(l, produced(7, 0, 8, 1, epoch, false)); a.Err != nil || a.Duplicate {
					t.Errorf("the next one: %+v", a)
				}
			})
		}
	}
}

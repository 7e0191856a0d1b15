package coordinator

import (
	"fmt"
	"testing"
	"time"
)

// TestExpiryInPieces: groups are looked at a part at a time, all of them in the end, though groups go on the way.
func TestExpiryInPieces(t *testing.T) {
	w := newWorld(t)
	w.config.Retention = time.Hour
	const groups = 100
	for i := range groups {
		for p := range int32(10) {
			if err := w.commitOne(fmt.Sprint("g", i), "t", p, 1, ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.pass(2 * time.Hour)
	pieces := 0
	for left := w.shard.Groups(); left > 0; pieces++ {
		was := w.shard.Offsets()
		left = w.shard.ExpireSome(left, 50, w.now())
		w.journal.answer(w.now())
		if gone := was - w.shard.Offsets(); gone > 60 {
			t.Fatalf("%d offsets in one piece", gone)
		}
		w.shard.check()
	}
	if w.shard.Offsets() != 0 || w.shard.Groups() != 0 || pieces < groups*10/60 {
		t.Errorf("%d offsets of %d groups are left after %d pieces", w.shard.Offsets(), w.shard.Groups(), pieces)
	}
}

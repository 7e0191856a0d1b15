package coordinator

import (
	"maps"
	"testing"

	"pgregory.net/rapid"
)

// TestTableIsAMap does to a table and to a Go map what comes to mind, and finds the same in both.
func TestTableIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var got table
		want := map[place]int64{}
		places := rapid.IntRange(1, 200).Draw(t, "places")
		for n := range rapid.IntRange(1, 400).Draw(t, "steps") {
			at := rapid.IntRange(0, places-1).Draw(t, "place")
			k := place{uint32(at % 3), int32(at / 3)}
			switch _, known := want[k]; {
			case !known:
				got.insert(k, entry{offset: int64(n)})
				want[k] = int64(n)
			case rapid.Bool().Draw(t, "remove"):
				got.remove(k)
				delete(want, k)
			default:
				got.find(k).offset = int64(n)
				want[k] = int64(n)
			}
			if got.len() != len(want) {
				t.Fatalf("%d places, should be %d", got.len(), len(want))
			}
			for k := range maps.Keys(want) {
				if e := got.find(k); e == nil || e.offset != want[k] {
					t.Fatalf("%+v is %+v, should be %d", k, e, want[k])
				}
			}
			if got.find(place{9, 9}) != nil {
				t.Fatal("finds what is not there")
			}
		}
	})
}

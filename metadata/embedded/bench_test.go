package embedded

import (
	"fmt"
	"testing"

	"kring/metadata"
)

// BenchmarkChange is the tree's and the log's part of one change, without the disk.
func BenchmarkChange(b *testing.B) {
	w := newBench(1)
	w.world(b)
	data := make([]byte, 100)
	ops := []metadata.Op{metadata.Create("/x", data)}
	w.do(b, func() {
		if _, _, err := w.store.do(ops); err != nil {
			b.Fatal(err)
		}
		ops = []metadata.Op{metadata.Check("/x", -1), metadata.SetData("/x", data, -1)}
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := w.store.do(ops); err != nil {
				b.Fatal(err)
			}
			w.store.pending = w.store.pending[:0]
		}
	})
}

// BenchmarkSnapshot is a snapshot of ten thousand topics of one partition.
func BenchmarkSnapshot(b *testing.B) {
	w := newBench(1)
	w.world(b)
	w.do(b, func() {
		for i := range 10000 {
			p := fmt.Sprintf("/t%05d", i)
			ops := []metadata.Op{metadata.Create(p, make([]byte, 120)), metadata.Create(p+"/p", nil), metadata.Create(p+"/p/0", nil),
				metadata.Create(p+"/p/0/state", make([]byte, 80))}
			if _, _, err := w.store.do(ops); err != nil {
				b.Fatal(err)
			}
		}
		b.Run("capture, on the loop", func(b *testing.B) {
			for b.Loop() {
				w.store.tree.capture()
			}
		})
		b.Run("encode, off the loop", func(b *testing.B) {
			for b.Loop() {
				encodeSnapshot(w.store.tree.capture(), 1, 1)
			}
		})
	})
}

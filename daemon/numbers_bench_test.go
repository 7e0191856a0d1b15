package main

import (
	"bytes"
	"fmt"
	"testing"

	"kring/daemon/broker"
	"kring/ring"
)

// BenchmarkPage makes the answer of a broker with 10,000 partitions on two loops, without asking them.
func BenchmarkPage(b *testing.B) {
	k, err := ring.New(ring.Options{Loops: 2})
	if err != nil {
		b.Fatal(err)
	}
	loops := []*loopCopy{{good: &broker.Figures{}}, {good: &broker.Figures{}}}
	for i := range 10_000 {
		f := loops[i%2].good
		f.Partitions = append(f.Partitions, broker.PartitionFigures{Topic: fmt.Sprint("topic-", (i*7919)%100), Partition: int32(i / 100), End: int64(i)})
	}
	n := &numbers{life: &life{}, log: newLogs(new(bytes.Buffer), logConfig("info", "text")), kernel: k, most: 10_000}
	b.ReportAllocs()
	for b.Loop() {
		var text bytes.Buffer
		text.Grow(8 << 20)
		(&page{out: &text, n: n, loops: loops}).write()
		b.SetBytes(int64(text.Len()))
	}
}

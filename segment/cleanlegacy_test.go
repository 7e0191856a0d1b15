package segment

import (
	"fmt"
	"testing"

	"kring/ring"
	"kring/wire/batch"
)

// Of a compressed message in an old format those records stay that must, like of any other batch.
func TestCleanDividesOldCompressedMessages(t *testing.T) {
	for _, magic := range []byte{0, 1} {
		for _, codec := range []batch.Codec{batch.Gzip, batch.Snappy, batch.LZ4} {
			r := newRig(t, 1)
			r.do("filter", func(task *ring.Task) {
				message := func(base int64, keys ...string) []byte {
					stub := make(batch.Legacy, 26)
					stub[16], stub[17] = magic, byte(codec)
					var list []batch.Record
					for i, k := range keys {
						rec := batch.Record{Offset: base + int64(i), Timestamp: epoch + int64(i), Key: []byte(k), Value: []byte("v")}
						if k == "gone" {
							rec.Value = nil
						}
						list = append(list, rec)
					}
					return batch.AppendLegacy(nil, stub, list, new(batch.Codecs))
				}
				in := append(message(10, "a", "b", "a", "gone"), message(14, "b", "c")...)
				in = append(in, message(16, "a")...)
				c := compactor{from: 10, upper: 17, legacyDeletes: true, keys: newKeyMap(task.Loop(), 1<<20, 0.9)}
				defer c.keys.release()
				for done := 0; done < len(in); {
					n, _, err := c.index(in[done:])
					if err != nil {
						t.Fatal(err)
					}
					done += n
					c.keys.supply(task.Loop())
					c.keys.grow()
				}
				out, done, err := c.filter(in, nil, 1<<20)
				if err != nil || done != len(in) {
					t.Fatalf("%d of %d: %v", done, len(in), err)
				}
				got := ""
				for len(out) > 0 {
					b, rest, err := batch.Whole(out)
					if err == nil {
						err = batch.Verify(b)
					}
					if err != nil {
						t.Fatal(err)
					}
					rs, err := batch.Open(b, 1<<20)
					if err != nil {
						t.Fatal(err)
					}
					for out = rest; rs.Next(); {
						got += fmt.Sprintf("%d=%s ", rs.Offset, rs.Key)
					}
					got += "| "
				}
				want := "13=gone | 14=b 15=c | 16=a | "
				if magic == 0 && codec == batch.LZ4 {
					want = "10=a 11=b 12=a " + want // stays whole
				}
				if got != want || c.stats.ReadRecords != 7 || c.stats.KeptRecords != 4 {
					t.Errorf("magic %d, %v: %s, want %s; %+v", magic, codec, got, want, c.stats)
				}
			})
		}
	}
}

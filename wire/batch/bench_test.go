package batch

import "testing"

func benchCheck(b *testing.B, records, size int) {
	one := plain(None, records, size)
	o := CheckOptions{BytesMax: 1 << 20}
	b.SetBytes(int64(len(one)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Check(one, &o); err != nil {
			b.Fatal(err)
		}
		Stamp(one, 0, 1)
	}
}

func BenchmarkCheck1KiBOneRecord(b *testing.B)    { benchCheck(b, 1, 940) }
func BenchmarkCheck1KiBTenRecords(b *testing.B)   { benchCheck(b, 10, 85) }
func BenchmarkCheck128KiBOf100Bytes(b *testing.B) { benchCheck(b, 1180, 100) }
func BenchmarkCheck128KiBOf1KiB(b *testing.B)     { benchCheck(b, 128, 1010) }
func BenchmarkCheck128KiBOf16Bytes(b *testing.B)  { benchCheck(b, 4600, 16) }

func BenchmarkSum128KiB(b *testing.B) {
	one := plain(None, 128, 1010)
	b.SetBytes(int64(len(one)))
	for b.Loop() {
		Header(one).Sum()
	}
}

func BenchmarkCheckCompressed128KiB(b *testing.B) {
	for _, c := range codecs[1:] {
		b.Run(c.String(), func(b *testing.B) {
			one := plain(c, 128, 1010)
			o := CheckOptions{Keys: true}
			info, err := Check(one, &o)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(128 << 10)
			b.ReportAllocs()
			for b.Loop() {
				if err := CheckCompressed(one, &o, &info, DecompressedMax); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

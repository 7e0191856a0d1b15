package segment

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// opener opens files out of a map, as Dump wants it.
func opener(files map[string][]byte) func(string) (io.ReaderAt, int64, error) {
	return func(name string) (io.ReaderAt, int64, error) {
		b, ok := files[name]
		if !ok {
			return nil, 0, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
		return bytes.NewReader(b), int64(len(b)), nil
	}
}

func dumpable(files map[string][]byte) []string {
	var names []string
	for name := range files {
		switch path.Ext(name) {
		case logSuffix, indexSuffix, timeSuffix, txnSuffix, snapshotSuffix:
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Dump prints what kafka-dump-log prints, byte for byte.
func TestDumpIsKafkas(t *testing.T) {
	files := unpack(t, "logdir-clean.tar.gz")
	for _, c := range []struct {
		golden  string
		records bool
	}{{"dump-clean.txt.gz", true}, {"dump-clean-plain.txt.gz", false}} {
		f, err := os.Open("testdata/" + c.golden)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		want, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		var got, problems bytes.Buffer
		if err := Dump(&got, &problems, dumpable(files), DumpOptions{PrintDataLog: c.records, Open: opener(files)}); err != nil {
			t.Fatal(err)
		}
		out := got.String()
		if c.records != strings.HasPrefix(problems.String(), "Non-consecutive offsets") {
			t.Errorf("%s: gaps are told if records are looked at: %q", c.golden, problems.String())
		}
		for i, line := range strings.Split(string(want), "\n") {
			mine, rest, _ := strings.Cut(out, "\n")
			if out = rest; mine != line {
				t.Fatalf("%s line %d:\n%q\nwant\n%q", c.golden, i+1, mine, line)
			}
		}
	}
}

func TestDumpTellsWhatIsWrong(t *testing.T) {
	golden := unpack(t, "logdir-clean.tar.gz")
	dir := "logdir-clean/rolls-0/"
	for _, c := range []struct {
		name, file string
		at         int
		options    DumpOptions
		want       string
	}{
		{"a flipped bit in a record", fileName(0, logSuffix), 300, DumpOptions{}, "isvalid: false"},
		{"a length that is none", fileName(0, logSuffix), 8, DumpOptions{}, "Found 3590 invalid bytes at the end of " + fileName(0, logSuffix)},
		{"an entry with another offset", fileName(0, indexSuffix), 3, DumpOptions{}, "Mismatches in :"},
		{"an entry into the middle of a batch", fileName(0, indexSuffix), 7, DumpOptions{}, "Index offset: 5, log offset: -1"},
		{"a time no batch has", fileName(0, timeSuffix), 7, DumpOptions{}, "Found timestamp mismatch"},
		{"an offset no batch ends at", fileName(0, timeSuffix), 11, DumpOptions{}, "not found in the log"},
		{"a name that is none", "README", 0, DumpOptions{}, "Ignoring unknown file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := map[string][]byte{dir + "README": {1}}
			for name, b := range golden {
				files[name] = bytes.Clone(b)
			}
			files[dir+c.file][c.at] ^= 0x80 >> (7 * min(c.at, 1))
			c.options.Open = opener(files)
			var got bytes.Buffer
			if err := Dump(&got, &got, []string{dir + c.file}, c.options); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(got.String(), c.want) {
				t.Errorf("no %q in\n%.2000s", c.want, got.String())
			}
		})
	}
}

func FuzzDump(f *testing.F) {
	golden := unpack(f, "logdir-clean.tar.gz")
	suffixes := []string{logSuffix, indexSuffix, timeSuffix, txnSuffix, snapshotSuffix}
	for _, name := range dumpable(golden) {
		if b := golden[name]; len(b) < 2000 {
			f.Add(uint8(slices.Index(suffixes, path.Ext(name))), b, golden[strings.TrimSuffix(name, path.Ext(name))+logSuffix])
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, b, log []byte) {
		name := "d/" + fileName(0, suffixes[int(kind)%len(suffixes)])
		files := map[string][]byte{"d/" + fileName(0, logSuffix): log, name: b}
		_ = Dump(io.Discard, io.Discard, []string{name}, DumpOptions{PrintDataLog: true, Open: opener(files)})
		_ = Dump(io.Discard, io.Discard, []string{name}, DumpOptions{IndexSanity: true, Open: opener(files)})
	})
}

package segment

import (
	"bytes"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"kring/ring"
)

// filesOnly serves files of a map, as VerifyOptions reach them.
func filesOnly(files map[string][]byte, each func(Finding)) VerifyOptions {
	return VerifyOptions{
		Each: each,
		Open: func(name string) (io.ReaderAt, int64, error) {
			b, ok := files[name]
			if !ok {
				return nil, 0, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
			}
			return bytes.NewReader(b), int64(len(b)), nil
		},
		List: func(dir string) ([]ring.Entry, error) {
			seen := map[string]ring.Entry{}
			for name, b := range files {
				rest, ok := strings.CutPrefix(name, dir+"/")
				if !ok {
					continue
				}
				top, _, nested := strings.Cut(rest, "/")
				seen[top] = ring.Entry{Name: top, Dir: nested, Size: int64(len(b))}
			}
			var list []ring.Entry
			for _, e := range seen {
				list = append(list, e)
			}
			slices.SortFunc(list, func(a, b ring.Entry) int { return strings.Compare(a.Name, b.Name) })
			return list, nil
		},
	}
}

// verifyAll verifies a log dir made of files and gives what is found.
func verifyAll(t *testing.T, dir string, files map[string][]byte) (found []Finding) {
	t.Helper()
	o := filesOnly(files, func(f Finding) { found = append(found, f) })
	places, err := VerifyDir(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range places {
		if _, err := p.Verify(o); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// Nothing is wrong with what Kafka has written, stopped in order or killed.
func TestVerifyFindsNothingInKafkasLogDirs(t *testing.T) {
	for _, name := range []string{"clean", "killed"} {
		for _, f := range verifyAll(t, "logdir-"+name, unpack(t, "logdir-"+name+".tar.gz")) {
			if !f.Harmless {
				t.Errorf("%s: %s at %d: %s; %s", name, f.File, f.Position, f.What, f.Do)
			} else {
				t.Logf("%s: %s at %d: %s; %s", name, f.File, f.Position, f.What, f.Do)
			}
		}
	}
}

// Every file that is damaged is named, and no other.
func TestVerifyNamesTheDamagedFile(t *testing.T) {
	golden := unpack(t, "logdir-clean.tar.gz")
	const dir = "logdir-clean/"
	for _, c := range []struct {
		file   string
		damage func([]byte) []byte
		at     int64
	}{
		{"rolls-0/" + fileName(15, logSuffix), func(b []byte) []byte { b[1000] ^= 4; return b }, -2},
		{"rolls-0/" + fileName(15, logSuffix), func(b []byte) []byte { b[8] ^= 4; return b }, 0},
		{"rolls-0/" + fileName(0, logSuffix), func(b []byte) []byte { return b[:len(b)-1] }, -2},
		{"rolls-0/" + fileName(15, indexSuffix), func(b []byte) []byte { b[3]++; return b }, 0},
		{"rolls-0/" + fileName(15, timeSuffix), func(b []byte) []byte { b[7]++; return b }, 0},
		{"rolls-0/" + fileName(15, timeSuffix), func(b []byte) []byte { return nil }, 0},
		{"rolls-0/leader-epoch-checkpoint", func(b []byte) []byte { return []byte("0\n1\n7 0\n") }, -1},
		{"rolls-0/partition.metadata", func(b []byte) []byte { return b[:20] }, -1},
		{"txn-0/" + fileName(0, txnSuffix), func(b []byte) []byte { return b[:len(b)-34] }, -1},
		{"meta.properties", func(b []byte) []byte { return []byte("hello") }, -1},
		{cleanerFile, func(b []byte) []byte { return []byte("hello") }, -1},
	} {
		if golden[dir+c.file] == nil {
			t.Errorf("no %s", c.file)
			continue
		}
		files := map[string][]byte{}
		for name, b := range golden {
			files[name] = b
		}
		files[dir+c.file] = c.damage(bytes.Clone(golden[dir+c.file]))
		found := slices.DeleteFunc(verifyAll(t, "logdir-clean", files), func(f Finding) bool { return f.Harmless })
		if len(found) == 0 || found[0].File != dir+c.file || c.at >= -1 && found[0].Position != c.at {
			t.Errorf("%s: %+v", c.file, found)
		}
		for _, f := range found {
			base, _, _ := strings.Cut(f.File, ".")
			want, _, _ := strings.Cut(dir+c.file, ".")
			if base != want {
				t.Errorf("%s: %+v", c.file, f)
			}
		}
	}
}

// A partition whose segments are all gone, but not the snapshot of a clean stop, is told of.
func TestVerifyTellsOfAPartitionWithoutSegments(t *testing.T) {
	files := unpack(t, "logdir-clean.tar.gz")
	const dir = "logdir-clean/txn-0/"
	for name := range files {
		if strings.HasPrefix(name, dir) && strings.HasSuffix(name, logSuffix) {
			delete(files, name)
		}
	}
	for _, f := range verifyAll(t, "logdir-clean", files) {
		if f.File == dir+fileName(0, logSuffix) && strings.Contains(f.What, "are missing") && !f.Harmless {
			return
		}
	}
	t.Error("nothing said that records are missing")
}

// After a clean stop no index is without its segment: the segment was taken away. After a crash a deletion may have been under way.
func TestVerifyTellsOfASegmentThatWasTakenAway(t *testing.T) {
	for _, clean := range []bool{true, false} {
		files := unpack(t, "logdir-clean.tar.gz")
		const gone = "logdir-clean/rolls-0/00000000000000000000.log"
		delete(files, gone)
		if !clean {
			delete(files, "logdir-clean/.kafka_cleanshutdown")
		}
		told := false
		for _, f := range verifyAll(t, "logdir-clean", files) {
			told = told || f.File == gone && !f.Harmless
		}
		if told != clean {
			t.Errorf("after a clean stop %v: told %v", clean, told)
		}
	}
}

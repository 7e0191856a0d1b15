package twins

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// files is a log dir: content by path.
type files map[string][]byte

// readDir reads a whole log dir; directories that wait to be removed lose their random part.
func readDir(t *testing.T, dir string) files {
	t.Helper()
	all := files{}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		if folder, file, ok := strings.Cut(rel, "/"); ok && strings.HasSuffix(folder, "-delete") {
			topic, id, _ := strings.Cut(folder, ".")
			if len(id) != 32+len("-delete") {
				t.Errorf("%s is no name of a directory that waits to be removed", folder)
			}
			rel = topic + ".X-delete/" + file
		}
		all[rel], err = os.ReadFile(name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// cut takes the first batch off the front; nil if what is there is none.
func cut(b *[]byte) []byte {
	if len(*b) < 61 {
		return nil
	}
	n := 12 + int(int32(binary.BigEndian.Uint32((*b)[8:])))
	if n < 61 || n > len(*b) || (*b)[16] != 2 {
		return nil
	}
	first := (*b)[:n:n]
	*b = (*b)[n:]
	return first
}

func isControl(b []byte) bool  { return b[22]&0x20 != 0 }
func hasHorizon(b []byte) bool { return b[22]&0x40 != 0 }

// appendTime says whether the broker stamped its own time.
func appendTime(b []byte) bool { return b[22]&0x08 != 0 && !isControl(b) }
func offsetOf(b []byte) int64  { return int64(binary.BigEndian.Uint64(b)) }
func lastDelta(b []byte) int32 { return int32(binary.BigEndian.Uint32(b[23:])) }
func maxTime(b []byte) int64   { return int64(binary.BigEndian.Uint64(b[35:])) }

// markers are the times the broker stamped: those of a partition's transaction markers, and of batches with their time of append,
// numbered in the order of their offsets.
type markers map[int64]int64

// numbered stands for the time of such a batch.
const numbered = int64(1) << 52

// markersOf finds those of every partition of a dir, in live segments and in those that wait to be removed.
func markersOf(all files) map[string]markers {
	found := map[string]markers{}
	byOffset := map[string]map[int64]int64{}
	for name, b := range all {
		if !strings.HasSuffix(strings.TrimSuffix(name, ".deleted"), ".log") {
			continue
		}
		dir := path.Dir(name)
		if byOffset[dir] == nil {
			byOffset[dir] = map[int64]int64{}
		}
		for one := cut(&b); one != nil; one = cut(&b) {
			if (isControl(one) || appendTime(one)) && binary.BigEndian.Uint32(one[57:]) > 0 {
				byOffset[dir][offsetOf(one)] = maxTime(one)
			}
		}
	}
	for dir, times := range byOffset {
		m := markers{}
		for _, offset := range slices.Sorted(maps.Keys(times)) {
			if _, again := m[times[offset]]; !again {
				m[times[offset]] = numbered + offset
			}
		}
		found[dir] = m
	}
	return found
}

// begun is before any broker's time, and behind the times of producers' records.
var begun = time.Now().UnixMilli()

// time gives the number of a marker's time, and other times as they are.
func (m markers) time(ms int64) int64 {
	if n, ok := m[ms]; ok {
		return n
	}
	return ms
}

// timesOut replaces markers' times in a file of a partition.
func timesOut(t *testing.T, name string, b []byte, m markers) []byte {
	t.Helper()
	switch kind := path.Ext(strings.TrimSuffix(name, ".deleted")); kind {
	case ".log":
		return logWithout(t, name, b, m)
	case ".timeindex":
		b = bytes.Clone(b)
		for i := 0; i+12 <= len(b); i += 12 {
			binary.BigEndian.PutUint64(b[i:], uint64(m.time(int64(binary.BigEndian.Uint64(b[i:])))))
		}
	case ".snapshot":
		return snapshotWithout(t, name, b, m)
	}
	return b
}

// logWithout writes out batches that hold a time of the broker's, without it, and leaves the others as they are.
func logWithout(t *testing.T, name string, b []byte, m markers) []byte {
	t.Helper()
	var out []byte
	for one := cut(&b); one != nil; one = cut(&b) {
		if crc := binary.BigEndian.Uint32(one[17:]); crc != crc32.Checksum(one[21:], castagnoli) {
			t.Errorf("%s: batch at offset %d has a wrong checksum", name, binary.BigEndian.Uint64(one))
		}
		if !isControl(one) && !hasHorizon(one) && !appendTime(one) {
			out = append(out, one...)
			continue
		}
		h := bytes.Clone(one[:61])
		if appendTime(one) && !hasHorizon(one) {
			clear(h[17:21])
			binary.BigEndian.PutUint64(h[27:], uint64(m.time(int64(binary.BigEndian.Uint64(h[27:])))))
			binary.BigEndian.PutUint64(h[35:], uint64(m.time(maxTime(one))))
			out = append(append(out, h...), one[61:]...)
			continue
		}
		clear(h[17:21]) // checksum
		clear(h[27:35]) // first timestamp, or the delete horizon
		binary.BigEndian.PutUint64(h[35:], uint64(m.time(maxTime(one))))
		out = append(out, h...)
		for _, r := range recordsOf(t, one) {
			out = fmt.Appendf(out, "%d %d %q=%q %v %v\n", r.Offset, m.time(r.Timestamp.UnixMilli()), r.Key, r.Value, r.Value == nil, r.Headers)
		}
	}
	return append(out, b...)
}

// recordsOf unpacks a batch.
func recordsOf(t *testing.T, b []byte) []*kgo.Record {
	t.Helper()
	got, _ := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{KeepControlRecords: true, Topic: "twin"},
		&kmsg.FetchResponseTopicPartition{RecordBatches: b}, kgo.DefaultDecompressor(), nil)
	if got.Err != nil {
		t.Fatal(got.Err)
	}
	return got.Records
}

// snapshotWithout replaces times in a snapshot of producers; the checksum is checked and made anew.
func snapshotWithout(t *testing.T, name string, b []byte, m markers) []byte {
	t.Helper()
	if len(b) < 10 || (len(b)-10)%46 != 0 || binary.BigEndian.Uint32(b[2:]) != crc32.Checksum(b[6:], castagnoli) {
		t.Errorf("%s is no snapshot: % x", name, b)
		return b
	}
	b = bytes.Clone(b)
	for i := 10; i < len(b); i += 46 {
		ms := m.time(int64(binary.BigEndian.Uint64(b[i+26:])))
		if ms >= begun && ms < numbered { // the broker's, and its batch has been cleaned away
			ms = numbered
		}
		binary.BigEndian.PutUint64(b[i+26:], uint64(ms))
	}
	binary.BigEndian.PutUint32(b[2:], crc32.Checksum(b[6:], castagnoli))
	return b
}

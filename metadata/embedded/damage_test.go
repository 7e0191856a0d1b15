package embedded

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"syscall"
	"testing"

	"kring/metadata"
	"kring/metadata/storetest"
)

// lines logs into b.
func lines(b *strings.Builder) *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

// opened is what an opening of a store that has log as its only file finds: the tree before its own session, what is logged, and the
// files that are there then.
func opened(t *testing.T, h history, log []byte, clean bool) (tree, said string, files map[string][]byte) {
	t.Helper()
	b, out := newBench(1), strings.Builder{}
	b.options = Options{Clean: clean, Log: lines(&out)}
	b.m.WriteFile(dir+"/"+h.file, log)
	tr, err := loadFiles(map[string][]byte{h.file: log})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.start(t); err != nil {
		t.Fatal(err)
	}
	return tr.text(), out.String(), b.contents(t)
}

// Several damaged frames at the end of a log are no torn write: their bytes are kept, and one line names where.
func TestDamagedEndIsSetAside(t *testing.T) {
	h := writeHistory(t, 10)
	n := len(h.sizes)
	from := h.sizes[n-4]
	flip := bytes.Clone(h.log)
	for _, s := range h.sizes[n-4 : n-1] {
		flip[s+frameHead] ^= 1
	}
	heads := bytes.Clone(h.log)
	for _, s := range h.sizes[n-4 : n-1] {
		heads[s] = 'x'
	}
	last := bytes.Clone(h.log)
	last[len(last)-1] ^= 1
	for name, c := range map[string]struct {
		log  []byte
		from int
	}{
		"a bit in each of three":    {flip, from},
		"the heads of three":        {heads, from},
		"a bit in the last":         {last, h.sizes[n-2]},
		"text behind the last":      {append(bytes.Clone(h.log), "what is this?"...), len(h.log)},
		"three frames, one cut off": {flip[:len(flip)-5], from},
	} {
		t.Run(name, func(t *testing.T) {
			tree, said, files := opened(t, h, c.log, false)
			i := slices.Index(h.sizes, c.from)
			if tree != h.trees[i] {
				t.Error("another tree than after the last whole frame")
			}
			aside := fmt.Sprintf("%s.%d%s", h.file, c.from, damagedSuffix)
			if !bytes.Equal(files[aside], c.log[c.from:]) {
				t.Errorf("%d bytes were set aside, want %d", len(files[aside]), len(c.log)-c.from)
			}
			want := fmt.Sprintf("level=WARN msg=\"the end of the metadata store is damaged and was set aside; changes in it are lost\" "+
				"from=/data/%s position=%d length=%d file=/data/%s\n", h.file, c.from, len(c.log)-c.from, aside)
			if said != want {
				t.Errorf("said %swant %s", said, want)
			}
		})
	}
}

// A start that has no room to set bytes aside fails, and leaves no piece of them: the next may have room.
func TestNoRoomToSetAside(t *testing.T) {
	h := writeHistory(t, 3)
	b := newBench(1)
	log := append(bytes.Clone(h.log), "what is this?"...)
	b.m.WriteFile(dir+"/"+h.file, log)
	b.m.FailNext("sync", damagedSuffix, 0, 1, syscall.ENOSPC)
	if err := b.start(t); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if files := b.contents(t); len(files) != 1 || !bytes.Equal(files[h.file], log) {
		t.Errorf("%d files are there, the log as it was: %v", len(files), bytes.Equal(files[h.file], log))
	}
	b.m.Kill()
	if err := b.start(t); err != nil {
		t.Fatal(err)
	}
}

// What a power cut leaves is cut off without a word, unless the stop was clean: then nothing was being written.
func TestTornEndIsCutQuietly(t *testing.T) {
	b := newBench(3)
	c := storetest.NewClient(t, b.world(t))
	var h history
	for i := range 3 {
		h.sizes, h.trees = append(h.sizes, int(b.store.logSize)), append(h.trees, b.store.tree.text())
		if _, err := c.Do(metadata.Create(fmt.Sprint("/n", i), bytes.Repeat([]byte{'x'}, 1500))); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range b.contents(t) {
		h.file, h.log = name, data
	}
	last := h.sizes[2]
	hole := func(from int) []byte {
		log := bytes.Clone(h.log)
		clear(log[from:min(from+sector, len(log))])
		return log
	}
	for name, log := range map[string][]byte{
		"zeros":                       append(bytes.Clone(h.log[:last]), make([]byte, 3000)...),
		"half a frame":                h.log[:last+700],
		"half a head":                 h.log[:last+5],
		"half a frame, then zeros":    append(bytes.Clone(h.log[:last+700]), make([]byte, len(h.log)-last-700)...),
		"a sector lacking":            hole((last/sector + 1) * sector),
		"the last sector lacking":     hole(len(h.log) / sector * sector),
		"the sector of the head gone": append(append(bytes.Clone(h.log[:last]), make([]byte, sector-last%sector)...), h.log[last+sector-last%sector:]...),
	} {
		t.Run(name, func(t *testing.T) {
			tree, said, files := opened(t, h, log, false)
			if tree != h.trees[2] || said != "" || len(files) != 1 {
				t.Errorf("tree as expected: %v; said %q; %d files", tree == h.trees[2], said, len(files))
			}
			tree, said, files = opened(t, h, log, true)
			if zeros := name == "zeros"; tree != h.trees[2] || zeros != (said == "") || zeros != (len(files) == 1) {
				t.Errorf("after a clean stop: tree as expected: %v; said %q; %d files", tree == h.trees[2], said, len(files))
			}
		})
	}
}

// Wherever in a sector a frame begins, and whichever of its sectors a power cut keeps from the disk, it is a torn write.
func TestTornWhereverItBegins(t *testing.T) {
	for at := range int64(sector) {
		frame := append(beginFrame(nil), bytes.Repeat([]byte{'x'}, 3*sector)...)
		endFrame(frame, at, frameMark)
		pieces := (int(at) + len(frame) + sector - 1) / sector
		for lacking := 1; lacking < 1<<pieces; lacking++ {
			rest := bytes.Clone(frame)
			for i := range pieces {
				if lacking>>i&1 != 0 {
					clear(rest[max(i*sector-int(at), 0):min((i+1)*sector-int(at), len(rest))])
				}
			}
			if !torn(rest, at) {
				t.Fatalf("a frame at %d without the sectors %b is no torn write", at, lacking)
			}
		}
		frame[0] ^= 1
		if torn(frame, at) {
			t.Fatalf("a frame at %d with another mark is a torn write", at)
		}
	}
}

// A store that a clean stop closed ends with the end of its session; one that lost frames whole does not.
func TestEndThatIsMissingAfterACleanStop(t *testing.T) {
	b, out := newBench(4), strings.Builder{}
	c := storetest.NewClient(t, b.world(t))
	if _, err := c.Do(metadata.CreateEphemeral("/here", nil)); err != nil {
		t.Fatal(err)
	}
	size := b.store.logSize
	if _, err := c.Do(metadata.Create("/topic", nil)); err != nil {
		t.Fatal(err)
	}
	if err := b.close(t); err != nil {
		t.Fatal(err)
	}
	b.options = Options{Clean: true, Log: lines(&out)}
	for _, whole := range []bool{true, false} {
		if !whole {
			log, err := b.m.ReadFile(dir + "/" + fileName(0, logSuffix))
			if err != nil {
				t.Fatal(err)
			}
			b.m.WriteFile(dir+"/"+fileName(0, logSuffix), log[:size])
		}
		if err := b.start(t); err != nil {
			t.Fatal(err)
		}
		if told := strings.Contains(out.String(), "does not end as a clean stop leaves it"); told == whole {
			t.Errorf("whole: %v, said %q", whole, out.String())
		}
		if err := b.close(t); err != nil {
			t.Fatal(err)
		}
	}
}

// FuzzSealed has frames whose checksums hold, of any content, in a log and in a snapshot: they are read or damage, and nothing else.
func FuzzSealed(f *testing.F) {
	h := writeHistory(f, 4)
	for i, from := range h.sizes[:3] {
		f.Add(h.log[from+frameHead:h.sizes[i+1]], uint32(0), false)
	}
	tr := newTree()
	snapshot := encodeSnapshot(tr.capture(), 0, 1)
	_, nodes, err := readFrame(snapshot[headerSize:], headerSize)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(nodes, uint32(len(tr.nodes)), true)
	f.Fuzz(func(t *testing.T, payload []byte, count uint32, inSnapshot bool) {
		files := map[string][]byte{}
		frame := func(b []byte, payload []byte, mark uint32) []byte {
			from := len(b)
			b = append(beginFrame(b), payload...)
			endFrame(b[from:], int64(from), mark)
			return b
		}
		if inSnapshot {
			b := frame(appendHeader(nil, snapshotMagic, 0), payload, frameMark)
			end := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(nil, count), 1)
			files[fileName(0, snapshotSuffix)] = frame(b, end, endMark)
			files[fileName(0, logSuffix)] = appendHeader(nil, logMagic, 0)
		} else {
			files[fileName(0, logSuffix)] = frame(appendHeader(nil, logMagic, 0), payload, frameMark)
		}
		tr, err := loadFiles(files)
		var damage *DamageError
		if err == nil {
			tr.text()
		} else if !errors.As(err, &damage) {
			t.Fatal(err)
		}
	})
}

// A log that is full of what looks like frames is refused in good time.
func TestMarksWithoutEnd(t *testing.T) {
	h := writeHistory(t, 3)
	log := bytes.Clone(h.log)
	for len(log) < 4<<20 {
		log = binary.BigEndian.AppendUint32(log, frameMark)
		log = binary.BigEndian.AppendUint32(log, 1<<20)
	}
	_, err := loadFiles(map[string][]byte{h.file: log})
	var damage *DamageError
	if !errors.As(err, &damage) || damage.Offset != int64(len(h.log)) {
		t.Fatal(err)
	}
}

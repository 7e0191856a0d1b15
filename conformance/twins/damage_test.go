package twins

import (
	"bytes"
	"encoding/binary"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestTwinsAfterAKill kills both brokers, damages what they leave alike, and has each recover its own files and then the other's.
func TestTwinsAfterAKill(t *testing.T) { eachLoops(t, 1, twinsAfterAKill) }

func twinsAfterAKill(t *testing.T, loops int) {
	s := newStory(t, loops)
	s.topics()
	if long() {
		s.edged()
		s.edges(0)
	}
	s.plain(0)
	s.idempotent(0)
	s.transactions(0)
	tail := s.tails()
	s.finished()
	s.halt(syscall.SIGKILL)
	s.compare("after a kill")
	s.tear(tail)
	s.interrupt()
	left := []files{readDir(t, s.twins[0].dir), readDir(t, s.twins[1].dir)}
	s.begin()
	s.view("after a recovery")
	s.finish(0)
	s.halt(syscall.SIGTERM)
	s.compare("after a recovery and a clean stop")
	if !long() {
		return
	}
	for i, w := range s.twins {
		w.replace(t, left[1-i])
	}
	s.begin()
	s.view("after a recovery of the other's files")
	s.finish(0)
	s.plain(1)
	s.edges(1)
	s.transactions(1)
	s.halt(syscall.SIGTERM)
	s.compare("after a recovery of the other's files and a clean stop")
}

// finished waits until every segment but the newest of each partition has its indexes, and the producers' snapshot behind it.
func (s *story) finished() {
	s.t.Helper()
	for until := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		missing := ""
		for _, w := range s.twins {
			logs, err := filepath.Glob(w.dir + "/*/*.log")
			if err != nil {
				s.t.Fatal(err)
			}
			for i, name := range logs {
				base := strings.TrimSuffix(name, ".log")
				wanted := []string{base + ".index", base + ".timeindex"}
				if i+1 == len(logs) || path.Dir(logs[i+1]) != path.Dir(name) {
					continue
				}
				for _, file := range append(wanted, strings.TrimSuffix(logs[i+1], ".log")+".snapshot") {
					if _, err := os.Stat(file); err != nil {
						missing = file
					}
				}
			}
		}
		if missing == "" {
			return
		}
		if time.Now().After(until) {
			s.t.Fatalf("%s is not there", missing)
		}
	}
}

// tails are bytes to be put behind the newest segments: what a crash, or worse, may leave there.
func (s *story) tails() map[string][]byte {
	whole := func(topic string, partition int32, seed int) []byte {
		b := batch{records: some(seed, 3, 200, s.base+500)}.bytes(s.t)
		binary.BigEndian.PutUint64(b, uint64(s.bound(topic, partition, -1)))
		binary.BigEndian.PutUint32(b[12:], 0)
		return b
	}
	flipped := whole("codecs", 1, 3)
	flipped[len(flipped)-5] ^= 1
	unacknowledged := whole("txn", 1, 5)
	return map[string][]byte{
		"rolls-0":      whole("rolls", 0, 1)[:300],
		"idem-0":       bytes.Repeat([]byte{0xff}, 100),
		"codecs-0":     make([]byte, 500),
		"codecs-1":     flipped,
		"rolls-time-0": {0, 0, 0},
		"txn-1":        append(unacknowledged, unacknowledged[:100]...), // a whole one that nobody was told of stays
		"txn-week-0":   append(whole("txn-week", 0, 7), 1),
	}
}

// tear puts the tails behind the newest segments of both.
func (s *story) tear(tails map[string][]byte) {
	s.t.Helper()
	for _, w := range s.twins {
		for dir, b := range tails {
			logs, err := filepath.Glob(w.dir + "/" + dir + "/*.log")
			if err != nil || len(logs) == 0 {
				s.t.Fatal(dir, err)
			}
			f, err := os.OpenFile(logs[len(logs)-1], os.O_WRONLY|os.O_APPEND, 0)
			if err == nil {
				_, err = f.Write(b)
				f.Close()
			}
			if err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// interrupt leaves what a kill in the midst of deletions and cleanings leaves: a segment that was renamed, one that is cleaned and not
// yet put in place, and one that is not finished.
func (s *story) interrupt() {
	s.t.Helper()
	for _, w := range s.twins {
		logs, err := filepath.Glob(w.dir + "/rolls-0/*.log")
		if err != nil || len(logs) < 4 {
			s.t.Fatal(logs, err)
		}
		for i, suffix := range []string{".deleted", ".swap", ".cleaned"} {
			for _, kind := range []string{".log", ".index", ".timeindex"} {
				name := strings.TrimSuffix(logs[i], ".log") + kind
				b, err := os.ReadFile(name)
				if err == nil && suffix == ".cleaned" {
					b = b[:len(b)/2]
				}
				if err == nil {
					err = os.WriteFile(name+suffix, b, 0o644)
				}
				if err != nil {
					s.t.Fatal(err)
				}
			}
		}
	}
}

// exchange gives each of both, which are down, the other's files.
func (s *story) exchange() {
	s.t.Helper()
	left := []files{readDir(s.t, s.twins[0].dir), readDir(s.t, s.twins[1].dir)}
	for i, w := range s.twins {
		w.replace(s.t, left[1-i])
	}
}

// replace puts other files in the place of a broker's: all of its partitions, and what a log dir keeps of them. Whose they are
// (meta.properties, topic ids, the store) stays.
func (w *twin) replace(t *testing.T, other files) {
	t.Helper()
	own := func(name string) bool {
		folder, file := path.Split(name)
		switch {
		case strings.HasSuffix(folder, "-delete/"):
			return true
		case folder == "":
			return !strings.HasSuffix(file, "-checkpoint") && file != ".kafka_cleanshutdown"
		}
		return file == "partition.metadata"
	}
	for name := range readDir(t, w.dir) {
		if !own(name) {
			if err := os.Remove(w.dir + "/" + name); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, b := range other {
		if !own(name) {
			if err := os.WriteFile(w.dir+"/"+name, b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

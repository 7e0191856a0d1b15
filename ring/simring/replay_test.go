package simring_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"kring/ring"
	"kring/ring/simring"
)

// journal is a small program on the door: clients send records, it appends each to a file, syncs, and acknowledges. Bugs are
// planted in it on purpose, to see that the simulator finds them.
type journal struct {
	ackEarly bool // acknowledges before the sync
	skipCRC  bool // believes what recovery finds
	mapOrder bool // writes in the order of a map
}

const recordSize = 300

// record is a body that carries its number, and a checksum.
func record(n int) []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, recordSize), uint32(n))
	for len(b) < recordSize-4 {
		b = append(b, byte(n*7+len(b)))
	}
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

func valid(b []byte) bool {
	return len(b) == recordSize && crc32.ChecksumIEEE(b[:recordSize-4]) == binary.BigEndian.Uint32(b[recordSize-4:])
}

// server is the journal running on one loop.
type server struct {
	j       *journal
	l       ring.Loop
	f       ring.File
	end     int64
	waiting map[*session][][]byte
	order   []*session
	turn    ring.Op
	busy    bool
	fail    func(string)
}

type session struct {
	s    *server
	conn ring.Conn
	dead bool
}

func (x *session) Closed(error) { x.dead = true }

func (x *session) Received(data []byte, _ *ring.Buf) (int, int) {
	n := 0
	for len(data)-n >= recordSize {
		if x.s.waiting[x] == nil {
			x.s.order = append(x.s.order, x)
		}
		x.s.waiting[x] = append(x.s.waiting[x], append([]byte(nil), data[n:n+recordSize]...))
		n += recordSize
	}
	if n > 0 {
		x.s.flush()
	}
	return n, recordSize
}

// flush writes what waits, once per turn, and acknowledges it when it is durable.
func (s *server) flush() {
	if s.busy {
		return
	}
	s.busy = true
	s.turn.Done = func(*ring.Op) { ring.Go(s.l, s.write) }
	s.l.AtTurnEnd(&s.turn)
}

func (s *server) write(t *ring.Task) {
	for len(s.order) > 0 {
		sessions, waiting := s.order, s.waiting
		s.order, s.waiting = nil, map[*session][][]byte{}
		if s.j.mapOrder {
			sessions = sessions[:0]
			for x := range waiting {
				sessions = append(sessions, x)
			}
		}
		var bufs [][]byte
		size := int64(0)
		for _, x := range sessions {
			for _, b := range waiting[x] {
				bufs = append(bufs, b)
				size += recordSize
			}
		}
		at := s.end
		s.end += size
		err := t.Wait(func(op *ring.Op) { s.f.Write(bufs, at, op) }).Err
		if err == nil && !s.j.ackEarly {
			err = t.Sync(s.f)
		}
		if err != nil {
			return // stays busy: the journal is offline
		}
		for _, x := range sessions {
			if !x.dead {
				x.conn.Send([]ring.Part{{Bytes: bytes.Repeat([]byte{1}, len(waiting[x]))}}, &ring.Op{Done: func(*ring.Op) {}})
			}
		}
		if s.j.ackEarly {
			if t.Sync(s.f) != nil {
				return
			}
		}
	}
	s.busy = false
}

// start recovers the file and serves.
func (j *journal) start(l ring.Loop, found func([]byte), fail func(string)) {
	ring.Go(l, func(t *ring.Task) {
		if t.MakeDir("/data") != nil || t.SyncDir("/") != nil {
			return
		}
		f, err := t.Open("/data/journal", ring.Write|ring.Create)
		if err != nil || t.SyncDir("/data") != nil {
			return
		}
		content, err := t.ReadFile("/data/journal", 1<<30)
		if err != nil {
			fail(err.Error())
			return
		}
		end := 0
		for end+recordSize <= len(content) && (j.skipCRC || valid(content[end:end+recordSize])) {
			end += recordSize
		}
		if err := errors.Join(t.Truncate(f, int64(end)), t.Sync(f)); err != nil {
			return
		}
		found(content[:end])
		s := &server{j: j, l: l, f: f, end: int64(end), waiting: map[*session][][]byte{}, fail: fail}
		ln, err := l.Listen(":9")
		if err != nil {
			fail(err.Error())
			return
		}
		l.Accept(ln, func(sock ring.Socket, _ netipAddrPort) {
			x := &session{s: s}
			x.conn = l.Attach(sock, x)
		})
	})
}

// outcome is what a run came to.
type outcome struct {
	digest uint64
	wrong  string
}

// live runs three lives of a journal with three clients; powerLoss or kill between them.
func live(seed uint64, j journal, o simring.Options) outcome {
	w := simring.New(seed, o)
	m := w.Machine("a")
	out := outcome{}
	wrong := func(s string) {
		if out.wrong == "" {
			out.wrong = s
		}
	}
	acked := map[int]bool{}
	next := 0
	for life := range 3 {
		ready := false
		m.Start(1, func(loops []ring.Loop) {
			j.start(loops[0], func(content []byte) {
				ready = true
				seen := map[int]bool{}
				for ; len(content) > 0; content = content[recordSize:] {
					n := int(binary.BigEndian.Uint32(content))
					if !bytes.Equal(content[:recordSize], record(n)) || seen[n] {
						wrong(fmt.Sprintf("life %d: record %d came back changed or twice", life, n))
					}
					seen[n] = true
				}
				for n := range next {
					if acked[n] && !seen[n] {
						wrong(fmt.Sprintf("life %d: acknowledged record %d is lost", life, n))
					}
				}
			}, wrong)
		})
		if err := w.RunUntil("start", time.Minute, func() bool { return ready }); err != nil {
			wrong(err.Error())
			break
		}
		for range 3 {
			c := w.Dial("a:9")
			var sent []int
			for range w.Rand().IntN(8) {
				c.Send(record(next))
				sent = append(sent, next)
				next++
			}
			c.OnReceive = func(b []byte) {
				for range b {
					acked[sent[0]] = true
					sent = sent[1:]
				}
			}
		}
		w.RunFor(time.Duration(w.Rand().IntN(8000)) * time.Microsecond)
		if w.FaultRand().IntN(3) == 0 {
			m.Kill()
		} else {
			m.Crash()
		}
	}
	out.digest = w.Trace()
	return out
}

func TestRunsReplayBySeed(t *testing.T) {
	runs := map[uint64]bool{}
	const seeds = 300
	for seed := range uint64(seeds) {
		a, b := live(seed, journal{}, simring.Options{}), live(seed, journal{}, simring.Options{})
		if a != b {
			t.Fatalf("seed %d: two runs came to %v and %v", seed, a, b)
		}
		if a.wrong != "" {
			t.Fatalf("seed %d: %s", seed, a.wrong)
		}
		runs[a.digest] = true
	}
	if len(runs) != seeds {
		t.Fatalf("%d seeds made only %d runs", seeds, len(runs))
	}
}

// TestDigestChild prints digests for TestRunsReplayElsewhere.
func TestDigestChild(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("SIMRING_DIGESTS"))
	for seed := range uint64(n) {
		fmt.Printf("digest %d %x\n", seed, live(seed, journal{}, simring.Options{}).digest)
	}
}

func TestRunsReplayInAnotherProcessOnOneThread(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestDigestChild$")
	cmd.Env = append(os.Environ(), "SIMRING_DIGESTS=20", "GOMAXPROCS=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(20) {
		want := fmt.Sprintf("digest %d %x\n", seed, live(seed, journal{}, simring.Options{}).digest)
		if !strings.Contains(string(out), want) {
			t.Fatalf("%q is not in %q", want, out)
		}
	}
}

func TestPlantedBugsAreFound(t *testing.T) {
	for name, j := range map[string]journal{
		"acknowledges before the sync": {ackEarly: true},
		"believes a torn record":       {skipCRC: true},
	} {
		found := 0
		for seed := range uint64(200) {
			if live(seed, j, simring.Options{}).wrong != "" {
				found++
			}
		}
		t.Logf("%s: found by %d of 200 seeds", name, found)
		if found < 10 {
			t.Errorf("%s: found by %d of 200 seeds only", name, found)
		}
	}
}

func TestOrderOfAMapIsFoundByTheDigest(t *testing.T) {
	for seed := range uint64(100) {
		for range 5 {
			if live(seed, journal{mapOrder: true}, simring.Options{}) != live(seed, journal{mapOrder: true}, simring.Options{}) {
				return
			}
		}
	}
	t.Fatal("a program that ranges over a map replayed the same a hundred times")
}

func TestCrashesLeaveNoTasks(t *testing.T) {
	before := runtime.NumGoroutine()
	for seed := range uint64(50) {
		live(seed, journal{}, simring.Options{})
	}
	if after := runtime.NumGoroutine(); after > before+5 {
		t.Fatalf("%d goroutines before, %d after", before, after)
	}
}

func TestStoryIsInColumns(t *testing.T) {
	var log strings.Builder
	live(1, journal{}, simring.Options{Log: &log})
	for _, want := range []string{"a/0        write     /data/journal @0 +", "CRASH", "connect", "sync"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is not in the story:\n%s", want, log.String())
		}
	}
}

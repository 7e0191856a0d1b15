package ring

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// More connections with more half-received frames than memory: all of them get through, and memory stays near its limit.
func TestFramesGetThroughWhenMemoryIsShort(t *testing.T) {
	const limit = 8 << 20
	k := onLoops(t, 1, Options{MaxMemory: limit})
	a := serve(t, k, func(l Loop, s Socket) { attachEcho(l, s) })
	var wg sync.WaitGroup
	for i := range uint64(40) {
		wg.Go(func() {
			c := dial(t, a)
			defer c.Close()
			if err := ask(c, i, []int{1 << 20, 10, 600 << 10, 200}); err != nil {
				t.Error(i, err)
			}
		})
	}
	wg.Wait()
	l := k.Loops()[0]
	on(t, l, func(task *Task) {
		for l.InUse() != 0 {
			task.Sleep(Tick)
		}
	})
}

// Peers that begin large frames, send most of them and never the end: memory stays near its limit, and a small request is answered.
func TestUnfinishedFramesDoNotFillMemory(t *testing.T) {
	const limit, size, peers, first = 16 << 20, 8 << 20, 40, 20_000
	k := onLoops(t, 1, Options{MaxMemory: limit})
	a := serve(t, k, func(l Loop, s Socket) { attachEcho(l, s) })
	l := k.Loops()[0].(*loop)
	frame := append(binary.BigEndian.AppendUint32(nil, size), make([]byte, size-1)...)
	var all []net.Conn
	for range peers {
		c := dial(t, a)
		defer c.Close()
		if _, err := c.Write(frame[:first]); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	on(t, l, func(task *Task) {
		for l.stats.ReceivedBytes < peers*first {
			task.Sleep(Tick)
		}
	})
	for _, c := range all {
		c.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
		c.Write(frame[first:]) // as much as is taken
	}
	most := int64(0)
	on(t, l, func(task *Task) {
		for range 300 {
			most = max(most, l.InUse())
			task.Sleep(Tick)
		}
	})
	if most > 3*limit {
		t.Errorf("%d bytes are lent, with a limit of %d", most, limit)
	}
	c := dial(t, a)
	defer c.Close()
	if err := ask(c, 1, []int{10, 200}); err != nil {
		t.Error(err)
	}
}

// A peer that never reads its answers, and does not stop asking, holds no more than what the server lets it.
func TestPausedConnectionReceivesNothingAndGoesOnWhereItStopped(t *testing.T) {
	k := onLoops(t, 1, Options{})
	l := k.Loops()[0]
	var e *echo
	got := make(chan bool, 1)
	a := serve(t, k, func(l Loop, s Socket) { e = attachEcho(l, s); got <- true })
	c := dial(t, a)
	wait(t, got, "accept")
	on(t, l, func(*Task) { e.conn.Pause() })
	sent := 0
	c.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
	frame := binary.BigEndian.AppendUint32(nil, 60000)
	frame = append(frame, make([]byte, 60000)...)
	for {
		n, err := c.Write(frame[sent%len(frame):])
		sent += n
		if err != nil {
			break
		}
	}
	on(t, l, func(*Task) {
		if held := e.conn.(*conn).asm.Held(); held > 4*pieceSize {
			t.Errorf("%d bytes were received while paused", held)
		}
		e.conn.Resume()
	})
	c.SetWriteDeadline(time.Time{})
	go c.Write(frame[sent%len(frame):])
	whole := (sent + len(frame) - 1) / len(frame) * len(frame)
	if n, err := io.CopyN(io.Discard, c, int64(whole)); err != nil {
		t.Errorf("%d of %d bytes came back: %v", n, whole, err)
	}
}

// ender closes as soon as it gets something, with everything under way.
type ender struct {
	echo
	how int
}

func (e *ender) Received(data []byte, b *Buf) (int, int) {
	n, need := e.echo.Received(data, b)
	switch e.how % 4 {
	case 0:
		e.conn.Close()
		e.conn.Close()
	case 1:
		e.conn.CloseAfterSend()
	case 2:
		e.conn.Pause()
		e.conn.Close()
	case 3:
		e.l.AtTurnEnd(&Op{Done: func(*Op) { e.conn.Close() }})
	}
	return n, need
}

func TestConnectionsCloseOnceWithWhateverUnderWay(t *testing.T) {
	const conns = 200
	k := onLoops(t, 2, Options{})
	closed := make(chan error, 2*conns)
	n := 0
	var mu sync.Mutex
	a := serve(t, k, func(l Loop, s Socket) {
		mu.Lock()
		e := &ender{how: n}
		n++
		mu.Unlock()
		e.l, e.closed = l, closed
		e.conn = l.Attach(s, e)
	})
	for i := range conns {
		go func() {
			c, err := net.Dial("tcp", a.String())
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			b := binary.BigEndian.AppendUint32(nil, uint32(i*500))
			b = append(b, make([]byte, i*500)...)
			b = append(b, b...)
			if i%3 == 0 {
				c.(*net.TCPConn).SetLinger(0) // a reset, when we close
			}
			c.Write(b)
			if i%3 != 0 {
				io.Copy(io.Discard, c)
			}
		}()
	}
	for range conns {
		wait(t, closed, "a connection")
	}
	for _, l := range k.Loops() {
		on(t, l, func(task *Task) {
			for l.InUse() != 0 {
				task.Sleep(Tick)
			}
			if s := StatsOf(l); s.Connections != 0 {
				t.Errorf("%d connections are left", s.Connections)
			}
		})
	}
	if len(closed) != 0 {
		t.Error("a connection was closed twice")
	}
}

// sender sends a file's ranges to whoever connects.
type sender struct {
	conn   Conn
	closed chan error
}

func (s *sender) Received([]byte, *Buf) (int, int) { return 0, 0 }
func (s *sender) Closed(err error)                 { s.closed <- err }

func TestFileRangesOfAllSizesCachedOrNot(t *testing.T) {
	content := random(9<<20, 7)
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	k := onLoops(t, 1, Options{})
	l := k.Loops()[0]
	conns := make(chan *sender, 1)
	a := serve(t, k, func(l Loop, s Socket) {
		r := &sender{closed: make(chan error, 1)}
		r.conn = l.Attach(s, r)
		conns <- r
	})
	c := dial(t, a)
	s := wait(t, conns, "accept")
	var file File
	on(t, l, func(task *Task) {
		var err error
		if file, err = task.Open(name, 0); err != nil {
			t.Error(err)
		}
	})
	at := int64(0)
	for i, n := range []int64{1, 100, 4096, 16<<10 - 1, 16 << 10, 16<<10 + 1, 100 << 10, 1 << 20, 5 << 20, 10, 17 << 10} {
		if i%3 == 2 {
			unix.Sync()
			on(t, l, func(*Task) { unix.Fadvise(fdOf(file), 0, 0, unix.FADV_DONTNEED) })
		}
		done := make(chan error, 1)
		on(t, l, func(*Task) {
			parts := []Part{{Bytes: []byte("<")}, {File: file, From: at, Len: n}, {Bytes: []byte("|")}, {File: file, From: at, Len: min(n, 3000)}, {Bytes: []byte(">")}}
			s.conn.Send(parts, &Op{Done: func(op *Op) { done <- op.Err }})
		})
		want := fmt.Sprintf("<%s|%s>", content[at:at+n], content[at:at+min(n, 3000)])
		got := make([]byte, len(want))
		if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
			t.Fatalf("range of %d: %v; the same bytes: %v", n, err, string(got) == want)
		}
		if err := wait(t, done, "send"); err != nil {
			t.Error(err)
		}
		at += n
	}
	on(t, l, func(*Task) {
		file.Close()
		if st := StatsOf(l); st.Sendfiles == 0 || !onTmpfsName(name) && st.ReadAheads == 0 {
			t.Errorf("sendfile %d times, read ahead %d times", st.Sendfiles, st.ReadAheads)
		} else if st.SendfileBytes/st.Sendfiles > turnMost {
			t.Errorf("%d bytes in one go keep the others waiting", st.SendfileBytes/st.Sendfiles)
		}
	})
}

func fdOf(f File) int { return f.(*file).fd }

func onTmpfsName(name string) bool {
	var st unix.Statfs_t
	return unix.Statfs(name, &st) == nil && (st.Type == unix.TMPFS_MAGIC || st.Type == unix.RAMFS_MAGIC)
}

func TestMemoryFallsBackAfterABurst(t *testing.T) {
	var s slab
	var lent []*Buf
	for i := range 2000 {
		b := s.alloc(1 + i*100)
		clear(b.B)
		lent = append(lent, b)
	}
	if s.inUse < 200<<20 {
		t.Fatal("lent", s.inUse)
	}
	before := resident(t)
	for _, b := range lent {
		b.Release()
	}
	for range 10 {
		s.trim(1000)
	}
	if s.inUse != 0 || s.warm != 0 {
		t.Errorf("in use %d, warm %d", s.inUse, s.warm)
	}
	if after := resident(t); before-after < 150<<20 {
		t.Errorf("resident memory went from %d to %d MiB", before>>20, after>>20)
	}
	// What is lent again is whole.
	b := s.alloc(100 << 10)
	clear(b.B)
	b.Release()
}

func resident(t testing.TB) int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size, pages int64
	fmt.Sscan(string(b), &size, &pages)
	return pages * int64(os.Getpagesize())
}

func TestSizesOfClasses(t *testing.T) {
	seen := map[int]int{}
	for n := 1; n <= slabMost; n += 1 + n/50 {
		i, size := classOf(n)
		if size < n || n > 16<<10 && size > n+n/4+pageSize || size%pageSize != 0 {
			t.Errorf("%d bytes get %d", n, size)
		}
		if old, ok := seen[i]; ok && old != size {
			t.Errorf("class %d is of %d and of %d bytes", i, old, size)
		}
		seen[i] = size
	}
}

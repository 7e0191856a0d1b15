package simring_test

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"kring/ring"
	"kring/ring/simring"
)

type netipAddrPort = netip.AddrPort

// run runs fn as a task on a fresh machine's loop 0 to its end.
func run(t *testing.T, w *simring.World, m *simring.Machine, fn func(t *ring.Task)) {
	t.Helper()
	done := false
	loops := m.Loops(2)
	m.Do(loops[0], func() {
		ring.Go(loops[0], func(t *ring.Task) {
			fn(t)
			done = true
		})
	})
	if err := w.RunUntil("the task", time.Hour, func() bool { return done }); err != nil {
		t.Fatal(err)
	}
}

// panics expects a panic that says so.
func panics(t *testing.T, says string, fn func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), says) {
			t.Errorf("panicked with %v, wanted %q", r, says)
		}
	}()
	fn()
}

func TestMisuseIsCaught(t *testing.T) {
	misuses := []struct {
		says string
		do   func(t *ring.Task, loops []ring.Loop, c ring.Conn)
	}{
		{"was called on", func(t *ring.Task, loops []ring.Loop, _ ring.Conn) { loops[1].AtTurnEnd(&ring.Op{}) }},
		{"Buf.Release of loop a/0 was called on the world", func(t *ring.Task, loops []ring.Loop, _ ring.Conn) {
			b := t.Loop().Alloc(1)
			t.Wait(func(op *ring.Op) { t.Loop().Offload(b.Release, op) })
		}},
		{"submitted again before", func(t *ring.Task, loops []ring.Loop, _ ring.Conn) {
			op := &ring.Op{Done: func(*ring.Op) {}}
			t.Loop().AtTurnEnd(op)
			t.Loop().List("/", op)
		}},
		{"posted again before", func(t *ring.Task, loops []ring.Loop, _ ring.Conn) {
			m := &ring.Message{Run: func(*ring.Message) {}}
			loops[1].Post(m)
			loops[1].Post(m)
		}},
		{"changed while they were being written", func(t *ring.Task, _ []ring.Loop, _ ring.Conn) {
			f, _ := t.Open("/f", ring.Write|ring.Create)
			b := []byte("abc")
			t.Wait(func(op *ring.Op) { f.Write([][]byte{b}, 0, op); b[0] = 'x' })
		}},
		{"changed while they were being sent", func(t *ring.Task, _ []ring.Loop, c ring.Conn) {
			b := []byte("abc")
			t.Wait(func(op *ring.Op) { c.Send([]ring.Part{{Bytes: b}}, op); b[0] = 'x' })
		}},
		{"overwritten while they were being sent", func(t *ring.Task, _ []ring.Loop, c ring.Conn) {
			f, _ := t.Open("/f", ring.Write|ring.Create)
			_ = t.Write(f, make([]byte, 3<<20), 0)
			c.Send([]ring.Part{{File: f, Len: 3 << 20}}, &ring.Op{Done: func(*ring.Op) {}})
			_ = t.Write(f, []byte("x"), 3<<20-1)
		}},
		{"cut to 5 while", func(t *ring.Task, _ []ring.Loop, c ring.Conn) {
			f, _ := t.Open("/f", ring.Write|ring.Create)
			_ = t.Write(f, make([]byte, 3<<20), 0)
			c.Send([]ring.Part{{File: f, Len: 3 << 20}}, &ring.Op{Done: func(*ring.Op) {}})
			_ = t.Truncate(f, 5)
		}},
		{"after Close", func(t *ring.Task, _ []ring.Loop, _ ring.Conn) {
			f, _ := t.Open("/f", ring.Write|ring.Create)
			f.Close()
			_ = t.Sync(f)
		}},
		{"for reading only", func(t *ring.Task, _ []ring.Loop, _ ring.Conn) {
			f, _ := t.Open("/f", ring.Create)
			_ = t.Write(f, []byte("x"), 0)
		}},
	}
	for _, c := range misuses {
		t.Run(c.says, func(t *testing.T) {
			w := simring.New(1, simring.Options{})
			m := w.Machine("a")
			loops := m.Loops(2)
			panics(t, c.says, func() {
				m.Do(loops[0], func() {
					ln, _ := loops[0].Listen(":1")
					loops[0].Accept(ln, func(s ring.Socket, _ netip.AddrPort) {
						conn := loops[0].Attach(s, nothing{})
						ring.Go(loops[0], func(t *ring.Task) { c.do(t, loops, conn) })
					})
				})
				w.RunFor(time.Millisecond)
				w.Dial("a:1").Pause()
				w.RunFor(time.Minute)
			})
		})
	}
}

type nothing struct{}

func (nothing) Received(b []byte, _ *ring.Buf) (int, int) { return len(b), 0 }
func (nothing) Closed(error)                              {}

func TestReleasedBufferIsPoisoned(t *testing.T) {
	w := simring.New(1, simring.Options{})
	run(t, w, w.Machine("a"), func(task *ring.Task) {
		b := task.Loop().Alloc(100)
		mem := b.B
		b.Release()
		for _, x := range mem {
			if x != 0xDB {
				t.Fatalf("%x", x)
			}
		}
		panics(t, "more often", b.Release)
	})
}

func TestLeaksAreListed(t *testing.T) {
	w := simring.New(1, simring.Options{})
	m := w.Machine("a")
	run(t, w, m, func(task *ring.Task) {
		l := task.Loop()
		l.Alloc(10)
		_, _ = task.Open("/leaked", ring.Create)
		l.After(time.Hour, &ring.Timer{Fire: func(*ring.Timer) {}})
		_, _ = l.Listen(":7")
		_, _ = l.LockFile("/lock")
		ring.Go(l, func(t *ring.Task) { t.Suspend(func(func()) {}) })
		l.List("/", &ring.Op{})
	})
	err := fmt.Sprint(w.Check())
	for _, want := range []string{"1 buffers", "file /leaked", "timers", "listener", "operation list /", "locked", "task of"} {
		if !strings.Contains(err, want) {
			t.Errorf("%q is not in %q", want, err)
		}
	}
	m.Kill()
	if err := w.Check(); err != nil {
		t.Error(err)
	}
}

func TestPowerLossKeepsWhatWasSyncedAndPlaysWithTheRest(t *testing.T) {
	old, fresh := strings.Repeat("o", 5000), strings.Repeat("n", 9000)
	kept, torn, lost, zeros := 0, 0, 0, 0
	for seed := range uint64(200) {
		w := simring.New(seed, simring.Options{})
		m := w.Machine("a")
		run(t, w, m, func(task *ring.Task) {
			f, _ := task.Open("/f", ring.Write|ring.Create)
			_ = task.Write(f, []byte(old), 0)
			_ = task.Sync(f)
			_ = task.SyncDir("/")
			_ = task.Write(f, []byte(fresh), 5000-2500)
		})
		m.Crash()
		b, err := m.ReadFile("/f")
		if err != nil || len(b) < 5000 || string(b[:2048]) != old[:2048] {
			t.Fatalf("seed %d: %v, %d bytes", seed, err, len(b))
		}
		for i, x := range b {
			if x != 'n' && x != 0 && (x != 'o' || i >= 5000) {
				t.Fatalf("seed %d: byte %d is %q", seed, i, x)
			}
		}
		rest := string(b[2500:])
		switch {
		case rest == fresh:
			kept++
		case !strings.Contains(rest, "n"):
			lost++
		case strings.Contains(rest, "\x00"):
			zeros++
		default:
			torn++
		}
	}
	if torn < 20 || zeros < 5 {
		t.Errorf("kept %d, torn %d, lost %d, zeros %d of 200", kept, torn, lost, zeros)
	}
}

func TestKillKeepsThePageCache(t *testing.T) {
	for seed := range uint64(20) {
		w := simring.New(seed, simring.Options{})
		m := w.Machine("a")
		run(t, w, m, func(task *ring.Task) {
			f, _ := task.Open("/f", ring.Write|ring.Create)
			_ = task.Write(f, []byte("written"), 0)
			_ = task.Rename("/f", "/g")
		})
		m.Kill()
		if b, err := m.ReadFile("/g"); string(b) != "written" {
			t.Fatalf("seed %d: %q, %v", seed, b, err)
		}
	}
}

func TestNamesAreDurableAfterSyncDirOnly(t *testing.T) {
	gone, there := 0, 0
	for seed := range uint64(100) {
		w := simring.New(seed, simring.Options{})
		m := w.Machine("a")
		run(t, w, m, func(task *ring.Task) {
			_ = task.WriteFile("/", "durable", []byte("d"))
			for _, name := range []string{"/x", "/y"} {
				f, _ := task.Open(name, ring.Write|ring.Create)
				_ = task.Write(f, []byte("abc"), 0)
				_ = task.Sync(f)
			}
			_ = task.Rename("/durable", "/moved")
		})
		m.Crash()
		files := strings.Join(m.Files("/"), " ")
		switch files {
		case "/durable":
			gone++
		case "/durable /x", "/durable /x /y":
		case "/moved /x /y":
			there++
		default:
			t.Fatalf("seed %d: %s", seed, files)
		}
	}
	if gone == 0 || there == 0 {
		t.Errorf("all gone %d, all there %d of 100", gone, there)
	}
}

func TestFailedSyncLosesPagesAndMustNotBeRepeated(t *testing.T) {
	w := simring.New(3, simring.Options{})
	m := w.Machine("a")
	m.FailNext("sync", "f", 0, 1, syscall.EIO)
	run(t, w, m, func(task *ring.Task) {
		_ = task.WriteFile("/", "f.keep", nil)
	})
	m.Kill()
	m.CalmDown()
	m.FailNext("sync", "/f", 1, 1, syscall.EIO)
	run(t, w, m, func(task *ring.Task) {
		f, _ := task.Open("/f", ring.Write|ring.Create)
		_ = task.SyncDir("/")
		_ = task.Write(f, []byte("first"), 0)
		if err := task.Sync(f); err != nil {
			t.Error(err)
		}
		_ = task.Write(f, []byte("second"), 0)
		if err := task.Sync(f); !errors.Is(err, syscall.EIO) {
			t.Error(err)
		}
		b, _ := task.ReadFile("/f", 100)
		if string(b) != "second" {
			t.Errorf("%q is read after the failed sync", b)
		}
		panics(t, "again after it had failed", func() { f.Sync(&ring.Op{}) })
	})
	m.Crash()
	if b, _ := m.ReadFile("/f"); string(b) != "first" {
		t.Errorf("%q is left", b)
	}
}

func TestFullDiskRefusesAndFreesAgain(t *testing.T) {
	w := simring.New(1, simring.Options{})
	m := w.Machine("a")
	m.SetCapacity(100 << 10)
	run(t, w, m, func(task *ring.Task) {
		f, _ := task.Open("/f", ring.Write|ring.Create)
		if err := task.Allocate(f, 0, 64<<10); err != nil {
			t.Error(err)
		}
		if err := task.Allocate(f, 0, 128<<10); !errors.Is(err, syscall.ENOSPC) {
			t.Error(err)
		}
		g, _ := task.Open("/g", ring.Write|ring.Create)
		if err := task.Write(g, make([]byte, 60<<10), 0); !errors.Is(err, syscall.ENOSPC) {
			t.Error(err)
		}
		if err := task.Write(f, make([]byte, 64<<10), 0); err != nil {
			t.Error("reserved blocks are refused: ", err)
		}
		g.Close()
		_ = task.Remove("/g")
		if n := m.FreeSpace(); n != 36<<10 {
			t.Errorf("%d bytes free", n)
		}
	})
}

func TestClientsReadWholeStreamsOverBadLinks(t *testing.T) {
	lost := 0
	for seed := range uint64(40) {
		w := simring.New(seed, simring.Options{})
		m := w.Machine("a")
		m.Faults.Drop = 0.02
		loops := m.Loops(1)
		content := make([]byte, 50_000)
		for i := range content {
			content[i] = byte(i * 31)
		}
		m.Do(loops[0], func() {
			ln, _ := loops[0].Listen(":5")
			loops[0].Accept(ln, func(s ring.Socket, _ netip.AddrPort) {
				c := loops[0].Attach(s, nothing{})
				c.Send([]ring.Part{{Bytes: content}}, &ring.Op{Done: func(*ring.Op) {}})
				c.CloseAfterSend()
			})
		})
		w.RunFor(time.Millisecond)
		c := w.Dial("a:5")
		b, err := c.Read(len(content)+1, time.Minute)
		if string(b) != string(content[:len(b)]) || err == nil {
			t.Fatalf("seed %d: %d bytes, %v", seed, len(b), err)
		}
		if err == io.EOF && len(b) != len(content) {
			t.Fatalf("seed %d: an orderly end after %d bytes", seed, len(b))
		}
		if err != io.EOF {
			lost++
		}
		w.RunFor(time.Second)
		if err := w.Check(); err == nil || strings.Contains(err.Error(), "connection") {
			t.Fatalf("seed %d: %v", seed, err) // the listener is held, and only it
		}
	}
	if lost == 0 || lost == 40 {
		t.Errorf("%d of 40 connections were lost", lost)
	}
	w := simring.New(1, simring.Options{})
	w.Machine("a")
	if _, err := w.Dial("a:1").Read(1, time.Second); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Error(err)
	}
}

func TestRunUntilTellsWhatDidNotCome(t *testing.T) {
	w := simring.New(77, simring.Options{})
	err := w.RunUntil("the impossible", time.Second, func() bool { return false })
	if err == nil || !strings.Contains(err.Error(), "seed 77: the impossible") {
		t.Error(err)
	}
}

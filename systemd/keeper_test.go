package systemd

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const patience = 30 * time.Second

// manager keeps what it is told.
type manager struct {
	mu   sync.Mutex
	said []string
	more chan struct{}
}

func (m *manager) hear(state string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.said = append(m.said, state)
	select {
	case m.more <- struct{}{}:
	default:
	}
	return nil
}

func (m *manager) all() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.said)
}

// wait returns when what was said makes ok true.
func (m *manager) wait(t *testing.T, ok func(said []string) bool) {
	t.Helper()
	for limit := time.After(patience); !ok(m.all()); {
		select {
		case <-m.more:
		case <-limit:
			t.Fatalf("said %q", m.all())
		}
	}
}

func count(said []string, what string) int {
	n := 0
	for _, s := range said {
		if strings.HasPrefix(s, what) {
			n++
		}
	}
	return n
}

// keep makes a keeper with short times; alive may be changed by the test.
func keep(t *testing.T, watchdog time.Duration, alive func() bool) (*Keeper, *manager) {
	t.Helper()
	m := &manager{more: make(chan struct{}, 1)}
	k := newKeeper(Options{Alive: func(time.Duration) bool { return alive() }}, watchdog, m.hear)
	k.every.extend, k.every.status, k.patience = 2*time.Millisecond, time.Millisecond, time.Hour
	go k.run()
	return k, m
}

func yes() bool { return true }

func TestReadyIsSaidWhenItServes(t *testing.T) {
	k, m := keep(t, 8*time.Millisecond, yes)
	k.Starting("recovering logs: 1 of 2")
	m.wait(t, func(said []string) bool {
		return slices.Contains(said, "STATUS=recovering logs: 1 of 2") && count(said, "EXTEND_TIMEOUT_USEC=60000000") > 1
	})
	if said := m.all(); count(said, "READY") > 0 || count(said, "WATCHDOG") > 0 {
		t.Errorf("too early: %q", said)
	}
	k.Serving("serves a")
	m.wait(t, func(said []string) bool {
		return count(said, "READY=1\nSTATUS=serves a") == 1 && count(said, "WATCHDOG=1") > 1
	})
	k.Starting("late news") // of a start that is over
	extended := count(m.all(), "EXTEND")
	beats := count(m.all(), "WATCHDOG=1")
	m.wait(t, func(said []string) bool { return count(said, "WATCHDOG=1") > beats+3 })
	if said := m.all(); count(said, "EXTEND") != extended || slices.Contains(said, "STATUS=late news") {
		t.Errorf("%q", said)
	}
	k.Stopping("draining")
	m.wait(t, func(said []string) bool {
		return count(said, "STOPPING=1\nSTATUS=draining") == 1 && count(said, "EXTEND") > extended+1
	})
}

func TestWatchdogIsNotToldOfADeadService(t *testing.T) {
	var mu sync.Mutex
	alive, asked := true, 0
	k, m := keep(t, 8*time.Millisecond, func() bool {
		mu.Lock()
		defer mu.Unlock()
		asked++
		return alive
	})
	k.Serving("")
	m.wait(t, func(said []string) bool { return count(said, "WATCHDOG=1") > 0 })
	mu.Lock()
	alive, asked = false, 0
	beats := count(m.all(), "WATCHDOG=1")
	mu.Unlock()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) { // until it has been looked at often enough
		mu.Lock()
		n := asked
		mu.Unlock()
		if n > 5 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("nobody looks")
		}
	}
	if n := count(m.all(), "WATCHDOG=1"); n > beats+1 { // one may have been under way
		t.Errorf("%d beats of a dead service", n-beats)
	}
}

func TestNoMoreTimeForAStartThatGetsNowhere(t *testing.T) {
	m := &manager{more: make(chan struct{}, 1)}
	k := newKeeper(Options{Alive: func(time.Duration) bool { return true }}, 0, m.hear)
	k.patience = 0
	k.Starting("waiting")
	k.tell()
	k.beat(time.Second)
	if said := m.all(); count(said, "EXTEND") != 0 {
		t.Errorf("%q", said)
	}
	k.patience = time.Hour
	k.beat(time.Second)
	if said := m.all(); count(said, "EXTEND") != 1 {
		t.Errorf("%q", said)
	}
	k.Serving("")
	k.tell()
	k.beat(time.Second) // nobody watches
	if said := m.all(); count(said, "WATCHDOG") != 0 {
		t.Errorf("%q", said)
	}
}

func TestReloadIsBegunAndEnded(t *testing.T) {
	k, m := keep(t, 0, yes)
	k.Serving("serves a")
	m.wait(t, func(said []string) bool { return count(said, "READY=1") == 1 })
	k.Reloaded()
	m.wait(t, func(said []string) bool { return count(said, "READY=1") == 2 })
	said := m.all()
	i := slices.IndexFunc(said, func(s string) bool { return strings.HasPrefix(s, "RELOADING=1") })
	if i < 1 || said[i+1] != "READY=1\nSTATUS=serves a" {
		t.Errorf("%q", said)
	}
}

// TestManagerIsToldOverItsSocket goes the whole way, by what systemd puts into the environment.
func TestManagerIsToldOverItsSocket(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	if k, err := Keep(Options{Alive: func(time.Duration) bool { return true }}); k != nil || err != nil {
		t.Errorf("%v %v", k, err)
	}
	var nobody *Keeper
	nobody.Starting("")
	nobody.Serving("")
	nobody.Stopping("")
	nobody.Reloaded()

	path := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "nonsense")
	if _, err := Keep(Options{}); err == nil {
		t.Error("a malformed WATCHDOG_USEC passes")
	}
	t.Setenv("WATCHDOG_USEC", "20000")
	t.Setenv("WATCHDOG_PID", "")
	os.Unsetenv("WATCHDOG_PID")
	k, err := Keep(Options{Alive: func(time.Duration) bool { return true }})
	if err != nil || k == nil {
		t.Fatal(err)
	}
	k.Serving("serves b")
	if err := l.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	var said []string
	for count(said, "WATCHDOG=1") == 0 || !slices.Contains(said, "READY=1\nSTATUS=serves b") {
		b := make([]byte, 1000)
		n, err := l.Read(b)
		if err != nil {
			t.Fatalf("%q: %v", said, err)
		}
		said = append(said, string(b[:n]))
	}
}

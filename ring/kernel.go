package ring

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	ringEntries     = 4096
	ringCompletions = 4 * ringEntries
	helpersMost     = 8
	stopPatience    = 2 * time.Second
)

// Kernel runs loops on io_uring.
type Kernel struct {
	loops     []Loop
	own       []*loop
	dirs      []string
	paths     map[string]writePath // by log dir
	otherPath writePath            // of files in no log dir
	ringFlags uint32
	writeOut  int64

	sendBuffer, receiveBuffer int

	helpers  helpers
	log      *slog.Logger
	findings []Finding
}

// New checks that the kernel gives what is needed and makes the loops; *Refused says what it does not. It may raise GOMAXPROCS:
// a loop that waits keeps its processor, and the rest of the process needs two.
func New(o Options) (*Kernel, error) {
	k := &Kernel{dirs: o.Dirs, paths: map[string]writePath{}, writeOut: o.WriteOutBytes,
		sendBuffer: o.SendBuffer, receiveBuffer: o.ReceiveBuffer, log: o.Log}
	k.helpers.crashing = o.Crashing
	if k.log == nil {
		k.log = slog.Default()
	}
	if k.writeOut <= 0 {
		k.writeOut = 16 << 20
	}
	loops := max(o.Loops, 1)
	memory := o.MaxMemory
	if memory <= 0 {
		memory = 1 << 30
	}
	k.helpers.most = helpersMost
	if err := preemptible(); err != nil {
		return nil, err
	}
	if err := k.examine(o.WritePath); err != nil {
		return nil, err
	}
	if runtime.GOMAXPROCS(0) < loops+2 {
		runtime.GOMAXPROCS(loops + 2)
	}
	for i := range loops {
		l := &loop{k: k, id: i, log: k.log.With("loop", i), start: time.Now().Add(-time.Second), maxMemory: memory}
		l.rng = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
		k.loops, k.own = append(k.loops, l), append(k.own, l)
	}
	return k, nil
}

// preemptible refuses to run where the collector could not interrupt a waiting loop.
func preemptible() error {
	settings := os.Getenv("GODEBUG")
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "DefaultGODEBUG" {
				settings = s.Value + "," + settings
			}
		}
	}
	off := false
	for s := range strings.SplitSeq(settings, ",") {
		if v, ok := strings.CutPrefix(strings.TrimSpace(s), "asyncpreemptoff="); ok {
			off = v != "0"
		}
	}
	if !off {
		return nil
	}
	cause := "asyncpreemptoff=1 keeps the garbage collector from interrupting a waiting loop"
	return &Refused{What: "GODEBUG", Cause: cause, Cure: "remove it"}
}

// pathOf is how writes to name go.
func (k *Kernel) pathOf(name string) writePath {
	if d := dirOf(k.dirs, name); d != "" {
		return k.paths[d]
	}
	return k.otherPath
}

// Loops are the loops, by ID.
func (k *Kernel) Loops() []Loop { return k.loops }

// Run runs the loops, calls start on loop 0 once all of them turn, and returns after Stop.
func (k *Kernel) Run(start func()) error {
	opened := make(chan error, len(k.own))
	begin := make(chan bool)
	var wg sync.WaitGroup
	for _, l := range k.own {
		wg.Go(func() {
			// The thread is never unlocked: it ends with the loop, and with it what it has under way.
			runtime.LockOSThread()
			l.thread.Store(int64(unix.Gettid()))
			nameThread(fmt.Sprintf("kring-loop-%d", l.id))
			err := l.open()
			opened <- err
			if <-begin && err == nil {
				k.helpers.guard(l.run)
			}
		})
	}
	var first error
	for range k.own {
		if err := <-opened; err != nil && first == nil {
			first = err
		}
	}
	if first == nil {
		k.own[0].Post(&Message{Run: func(*Message) { start() }})
	}
	for range k.own {
		begin <- first == nil
	}
	wg.Wait()
	if first == nil { // one that has ended may still be kicked by one that has not
		for _, l := range k.own {
			unix.Close(l.in.event)
		}
	}
	return first
}

// Threads are the kernel's ids of the loops' threads, by loop; 0 for one that has not begun. Any goroutine may call it.
func (k *Kernel) Threads() []int {
	ids := make([]int, len(k.own))
	for i, l := range k.own {
		ids[i] = int(l.thread.Load())
	}
	return ids
}

// nameThread gives the calling thread a name, as top -H and ps -L show it.
func nameThread(name string) {
	b := append([]byte(name), 0)
	unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&b[0])), 0, 0, 0) // without one it works as well
	runtime.KeepAlive(b)
}

// Stop makes Run return; any goroutine may call it. Connections are closed, ops under way end with their results or
// ErrCanceled; the broker has drained before.
func (k *Kernel) Stop() {
	for _, l := range k.own {
		l.Post(&Message{Run: func(*Message) { l.stopping = true }})
	}
}

// run turns until the loop is stopped.
func (l *loop) run() {
	for !l.stopping {
		l.turn()
	}
	l.shut()
}

// shut ends what is under way, waits for it a little, and gives the ring back.
func (l *loop) shut() {
	l.shutting = true
	for _, li := range l.listeners {
		li.Close()
	}
	for c := l.conns; c != nil; c = c.next {
		c.fail(ErrCanceled)
	}
	e := l.r.next()
	e.op, e.fd, e.opflags, e.flags = opAsyncCancel, -1, cancelAny|cancelAll, sqeCQESkipSuccess
	deadline := time.Now().Add(stopPatience)
	l.wheel.After(0, &Timer{Fire: func(t *Timer) { l.wheel.After(0, t) }}) // helpers cannot wake us any more: look each tick
	for (l.live > 1 || l.helping > 0 || l.conns != nil) && time.Now().Before(deadline) {
		l.turn()
	}
	for range turnRounds {
		l.turnEnd.runAll()
		l.ready.runAll()
	}
	if l.live > 1 {
		for i := range l.slots {
			if k := l.slots[i].kind; k > kindIgnored {
				l.log.Warn("an operation was still under way at the end", "kind", k)
			}
		}
	}
	l.r.close()
}

// Probe looks at what the kernel and the log dirs give; New has found it out.
func (k *Kernel) Probe() []Finding { return k.findings }

// tryRingWrites makes a file in dir and looks whether the kernel completes buffered ring writes at once.
func tryRingWrites(dir string, flags uint32) (inline int, tried int, err error) {
	for !exists(dir) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir) // not made yet: it will be on its parent's file system, most likely
	}
	f, err := os.CreateTemp(dir, ".kring-probe-*")
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	defer os.Remove(f.Name())
	r, err := openURing(64, 256, flags)
	if err != nil {
		return 0, 0, err
	}
	defer r.close()
	block := mapAnon(pageSize)
	for i := range probeWrites {
		e := r.next()
		e.op, e.fd, e.off, e.addr, e.len, e.user = opWrite, int32(f.Fd()), uint64(i*pageSize), addr(block), pageSize, 1
		n := r.show()
		if _, _, e := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), uintptr(n), 0, 0, 0, 0); e != 0 {
			return 0, 0, e
		}
		if r.pending() > 0 {
			inline++
		}
		for r.pending() == 0 {
			r.enter(1, int64(time.Second))
		}
		if res := r.cqes[*r.cqHead&r.cqMask].res; res != pageSize {
			return 0, 0, fmt.Errorf("probe write in %s: %w", dir, errnoOf(res))
		}
		r.seen()
	}
	return inline, probeWrites, nil
}

const probeWrites = 64

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func cleanDirs(dirs []string) []string {
	var clean []string
	for _, d := range dirs {
		clean = append(clean, filepath.Clean(d))
	}
	return clean
}

package ring

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The collector must not wait for a loop that waits for the kernel.
func TestCollectorRunsBesideWaitingLoops(t *testing.T) {
	k := onLoops(t, 2, Options{})
	for _, l := range k.Loops() {
		// A timer each tick keeps the loop in its raw waits.
		on(t, l, func(*Task) { l.After(Tick, &Timer{Fire: func(tm *Timer) { l.After(Tick, tm) }}) })
	}
	done := make(chan bool)
	go func() {
		for range 20 {
			runtime.GC()
		}
		close(done)
	}()
	wait(t, done, "collecting 20 times")
}

// What the arena is left with must be nothing to the collector: the memory it names is long something else.
func TestCollectorSeesNothingOfTheArena(t *testing.T) {
	dir := t.TempDir()
	k := onLoops(t, 1, Options{WritePath: "pwrite", Dirs: []string{dir}})
	stop, stopped := make(chan bool), make(chan bool)
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	}()
	on(t, k.Loops()[0], func(task *Task) {
		f, err := task.Open(filepath.Join(dir, "f"), Write|Create)
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		for range 20 {
			var bufs [][]byte
			for range 300 {
				bufs = append(bufs, make([]byte, 40000))
			}
			runtime.GC() // frees those of the round before, which the arena still names
			if op := task.Wait(func(op *Op) { f.Write(bufs, 0, op) }); op.Err != nil {
				t.Error(op.Err)
				return
			}
		}
	})
	close(stop)
	wait(t, stopped, "the collector")
}

func TestIdleLoopsCostNothing(t *testing.T) {
	k := onLoops(t, 2, Options{})
	var s [2]Stats
	for i, l := range k.Loops() {
		on(t, l, func(task *Task) { task.Sleep(10 * Tick); s[i] = StatsOf(l) })
	}
	before := cpuTime(t)
	for i, l := range k.Loops() {
		on(t, l, func(task *Task) {
			task.Sleep(500 * time.Millisecond)
			if turns := StatsOf(l).Turns - s[i].Turns; turns > 60 {
				t.Errorf("an idle loop turned %d times", turns)
			}
		})
	}
	if used := cpuTime(t) - before; used > 100*time.Millisecond && !testing.Short() {
		t.Errorf("%v of CPU for 1 s of waiting", used)
	}
}

func cpuTime(t testing.TB) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// inChild runs a test of this binary in a process of its own with an environment.
func inChild(t *testing.T, test string, env ...string) string {
	c := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.v")
	c.Env = append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	return string(out)
}

func TestRefusesToStartWithoutPreemption(t *testing.T) {
	if os.Getenv("RING_CHILD") != "" {
		_, err := New(Options{})
		t.Log("refused:", err)
		return
	}
	out := inChild(t, t.Name(), "RING_CHILD=1", "GODEBUG=asyncpreemptoff=1")
	if !strings.Contains(out, "asyncpreemptoff=1 keeps the garbage collector") {
		t.Error(out)
	}
}

// A filter such as Docker's answers EPERM; the refusal names it and the cure.
func TestRefusalNamesASeccompFilter(t *testing.T) {
	if os.Getenv("RING_CHILD") != "" {
		runtime.LockOSThread()
		forbid(t, unix.SYS_IO_URING_SETUP)
		k := &Kernel{paths: map[string]writePath{}}
		err := k.examine("pwrite")
		var r *Refused
		if !errors.As(err, &r) || !errors.Is(err, unix.EPERM) {
			t.Fatal("not refused:", err)
		}
		t.Log("refused:", err)
		last := k.Probe()[len(k.Probe())-1]
		if last.OK || last.Cure == "" {
			t.Error("found:", last)
		}
		return
	}
	if out := inChild(t, t.Name(), "RING_CHILD=1"); !strings.Contains(out, "seccomp") || !strings.Contains(out, "allow io_uring_setup") {
		t.Error(out)
	}
}

// forbid makes a system call fail with EPERM on this thread.
func forbid(t *testing.T, nr uint32) {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: nr, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0x00050000 | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0x7fff0000},
	}
	prog := &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(prog)), 0, 0); err != nil {
		t.Fatal(err)
	}
}

func TestRefusalNamesCauseAndCure(t *testing.T) {
	for _, e := range []unix.Errno{unix.EPERM, unix.ENOSYS, unix.ENOMEM, unix.EMFILE, unix.EINVAL} {
		r := refusedSetup(e)
		if r.Cause == "" || r.Cure == "" || !errors.Is(r, e) {
			t.Errorf("%v: %v", e, r)
		}
	}
	if _, err := New(Options{WritePath: "sideways"}); err == nil || !strings.Contains(err.Error(), "sideways") {
		t.Error("an unknown write path:", err)
	}
}

func TestProbeNamesThePathOfEachDir(t *testing.T) {
	dir := t.TempDir()
	list, err := Probe(Options{Dirs: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, f := range list {
		if !f.OK && f.Cure == "" {
			t.Error("no cure for", f)
		}
		if f.What == "kernel" && f.Cure != "" {
			t.Error("a cure for what is well:", f)
		}
		if f.What == "write path "+dir {
			found = strings.HasPrefix(f.State, "pwrite")
		}
		t.Log(f.What, "|", f.State, "|", f.Cure)
	}
	if !found {
		t.Error("the write path is not told")
	}
	left, _ := os.ReadDir(dir)
	if len(left) != 0 {
		t.Error("the probe leaves", left)
	}
}

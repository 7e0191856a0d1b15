package ring

import (
	"fmt"
	"os"
	"testing"
)

func TestLoopsThreadsAreNamed(t *testing.T) {
	k := onLoops(t, 2, Options{})
	for i, id := range k.Threads() {
		name, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/comm", id))
		if want := fmt.Sprintf("kring-loop-%d\n", i); err != nil || string(name) != want {
			t.Errorf("thread %d of loop %d is called %q (%v), want %q", id, i, name, err, want)
		}
	}
}

// TestCrashIsToldBeforeTheTrace looks at what runs while a panic is on its way, on a loop as on a helper.
func TestCrashIsToldBeforeTheTrace(t *testing.T) {
	told := 0
	h := helpers{crashing: func() { told++ }}
	h.guard(func() {})
	if told != 0 {
		t.Error("an end without a panic is no crash")
	}
	func() {
		defer func() {
			if told != 1 || recover() != "broken" {
				t.Errorf("told %d times, or the panic was lost", told)
			}
		}()
		h.guard(func() { panic("broken") })
	}()
}

func TestWhatGoesToTheKernelsWorkersIsCounted(t *testing.T) {
	dir := t.TempDir()
	k := onLoops(t, 1, Options{WritePath: "ring", Dirs: []string{dir}})
	on(t, k.Loops()[0], func(task *Task) {
		before := StatsOf(k.Loops()[0])
		op := task.Wait(func(op *Op) { k.Loops()[0].Open(dir+"/a", Write|Create, op) })
		f := op.File
		task.Wait(func(op *Op) { f.Write([][]byte{{1}}, 0, op) })
		task.Wait(f.Sync)
		task.Wait(func(op *Op) { f.Allocate(0, 4096, op) })
		task.Wait(func(op *Op) { k.Loops()[0].Rename(dir+"/a", dir+"/b", op) })
		task.Wait(func(op *Op) { f.Read(make([]byte, 1), 0, op) })
		f.Close()
		after := StatsOf(k.Loops()[0])
		if n := after.HandOffs - before.HandOffs; n != 4 {
			t.Errorf("%d hand-offs of open, sync, allocate and rename", n)
		}
		if n := after.RingWrites - before.RingWrites; n != 1 {
			t.Errorf("%d writes by the ring", n)
		}
	})
}

package ring

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"runtime/debug"
	"time"
)

// Task is straight-line code on a loop that waits more than once: a coroutine the loop resumes. It must not block but in
// its own methods. Await costs some 0.1 us and no thread switch.
type Task struct {
	loop   Loop
	op     Op
	timer  Timer
	resume func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	inside bool
	ending bool // it was stopped, and ends at its next wait if it runs
	done   bool
	parked bool
}

// stopped unwinds a task whose loop stops it.
type stopped struct{}

// Keeper is a loop that unwinds the tasks left on it when it ends; Go tells it of each.
type Keeper interface{ Started(*Task) }

// Go runs fn as a task on l: at once, up to its first wait. It must be called on the loop.
func Go(l Loop, fn func(*Task)) *Task {
	t := &Task{loop: l}
	t.resume, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		defer func() {
			t.done = true
			if r := recover(); r != nil {
				if _, ok := r.(stopped); !ok {
					// the coroutine's own stack is gone where its panic comes out
					panic(fmt.Sprintf("%v, in a task:\n%s", r, debug.Stack()))
				}
			}
		}()
		t.yield = yield
		fn(t)
	})
	t.op.Done = func(*Op) { t.wake() }
	t.timer.Fire = func(*Timer) { t.wake() }
	if k, ok := l.(Keeper); ok {
		k.Started(t)
	}
	t.wake()
	return t
}

func (t *Task) wake() {
	if t.done || t.ending {
		return
	}
	if t.inside {
		panic("ring: a task was resumed from inside itself")
	}
	t.inside = true
	t.resume()
	t.inside = false
}

// Stop unwinds the task at its present wait; its deferred calls run, its ops go on without it. One that runs, which has woken whoever
// calls Stop, ends at its next wait.
func (t *Task) Stop() {
	running := t.inside
	t.ending = true
	if !t.done && !running {
		t.inside = true
		t.stop()
		t.inside, t.done = false, true
		t.loop.Cancel(&t.timer)
	}
}

// Finished reports whether the task has returned or was stopped.
func (t *Task) Finished() bool { return t.done }

// Loop is where the task runs.
func (t *Task) Loop() Loop { return t.loop }

// Suspend waits until wake, which arm was given, is called; wake must not be called inside arm.
func (t *Task) Suspend(arm func(wake func())) {
	arm(t.wake)
	t.pause()
}

// Park waits until Unpark: a task that is kept for more work than one piece.
func (t *Task) Park() {
	t.parked = true
	t.pause()
	t.parked = false
}

// Parked reports whether the task is without work.
func (t *Task) Parked() bool { return t.parked }

// Unpark goes on with a parked task, at once, up to its next wait.
func (t *Task) Unpark() { t.wake() }

func (t *Task) pause() {
	if t.ending || !t.yield(struct{}{}) {
		panic(stopped{})
	}
}

// Wait submits one op by start and waits for it; the result is valid until the next wait.
func (t *Task) Wait(start func(*Op)) *Op {
	t.op.N, t.op.Err, t.op.File, t.op.Entries = 0, nil, nil, nil
	start(&t.op)
	t.pause()
	return &t.op
}

// Sleep waits for d.
func (t *Task) Sleep(d time.Duration) {
	t.loop.After(d, &t.timer)
	t.pause()
}

// Open is Disk.Open.
func (t *Task) Open(name string, how OpenFlag) (File, error) {
	op := t.Wait(func(op *Op) { t.loop.Open(name, how, op) })
	return op.File, op.Err
}

// Rename is Disk.Rename.
func (t *Task) Rename(from, to string) error {
	return t.Wait(func(op *Op) { t.loop.Rename(from, to, op) }).Err
}

// Remove is Disk.Remove.
func (t *Task) Remove(name string) error {
	return t.Wait(func(op *Op) { t.loop.Remove(name, op) }).Err
}

// MakeDir is Disk.MakeDir.
func (t *Task) MakeDir(name string) error {
	return t.Wait(func(op *Op) { t.loop.MakeDir(name, op) }).Err
}

// List is Disk.List.
func (t *Task) List(dir string) ([]Entry, error) {
	op := t.Wait(func(op *Op) { t.loop.List(dir, op) })
	return op.Entries, op.Err
}

// SyncDir is Disk.SyncDir.
func (t *Task) SyncDir(dir string) error {
	return t.Wait(func(op *Op) { t.loop.SyncDir(dir, op) }).Err
}

// Space is Disk.Space.
func (t *Task) Space(dir string) (free, total int64, err error) {
	op := t.Wait(func(op *Op) { t.loop.Space(dir, op) })
	if op.Err != nil || len(op.Entries) == 0 {
		return op.N, 0, op.Err
	}
	return op.N, op.Entries[0].Size, nil
}

// Read is File.Read.
func (t *Task) Read(f File, b []byte, at int64) (int, error) {
	op := t.Wait(func(op *Op) { f.Read(b, at, op) })
	return int(op.N), op.Err
}

// Write is File.Write of one piece.
func (t *Task) Write(f File, b []byte, at int64) error {
	bufs := [][]byte{b}
	return t.Wait(func(op *Op) { f.Write(bufs, at, op) }).Err
}

// Through goes through f on a helper, as File.Through does, and says how far it has come.
func (t *Task) Through(f File, b []byte, at int64, look func([]byte) int) (int64, error) {
	op := t.Wait(func(op *Op) { f.Through(b, at, look, op) })
	return op.N, op.Err
}

// Sync is File.Sync.
func (t *Task) Sync(f File) error { return t.Wait(f.Sync).Err }

// Allocate is File.Allocate.
func (t *Task) Allocate(f File, at, n int64) error {
	return t.Wait(func(op *Op) { f.Allocate(at, n, op) }).Err
}

// Truncate is File.Truncate.
func (t *Task) Truncate(f File, size int64) error {
	return t.Wait(func(op *Op) { f.Truncate(size, op) }).Err
}

// Size is File.Size: bytes and the last modification in Unix ms.
func (t *Task) Size(f File) (size, modMilli int64, err error) {
	op := t.Wait(f.Size)
	if op.Err != nil || len(op.Entries) == 0 {
		return op.N, 0, op.Err
	}
	return op.N, op.Entries[0].ModTime.UnixMilli(), nil
}

// SetTime is File.SetTime.
func (t *Task) SetTime(f File, modMilli int64) error {
	return t.Wait(func(op *Op) { f.SetTime(modMilli, op) }).Err
}

// ReadFile reads a whole file of at most limit bytes; a longer one is an error.
func (t *Task) ReadFile(name string, limit int64) ([]byte, error) {
	f, err := t.Open(name, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, _, err := t.Size(f)
	if err != nil {
		return nil, err
	}
	if size > limit {
		return nil, &fs.PathError{Op: "read", Path: name, Err: ErrTooLarge}
	}
	b := make([]byte, size)
	n, err := t.Read(f, b, 0)
	return b[:n], err
}

// WriteFile replaces name durably: a .tmp beside it is written, synced, renamed over it, and dir is synced.
func (t *Task) WriteFile(dir, name string, content []byte) error {
	path, tmp := dir+"/"+name, dir+"/"+name+".tmp"
	f, err := t.Open(tmp, Write|Create|Cut)
	if errors.Is(err, ErrNotRegular) { // nobody's but ours has this name
		if err = t.Remove(tmp); err == nil {
			f, err = t.Open(tmp, Write|Create|Cut)
		}
	}
	if err != nil {
		return err
	}
	if len(content) > 0 {
		err = t.Write(f, content, 0)
	}
	if err == nil {
		err = t.Sync(f)
	}
	f.Close()
	if err == nil {
		err = t.Rename(tmp, path)
	}
	if err == nil {
		err = t.SyncDir(dir)
	}
	return err
}

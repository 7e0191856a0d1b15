package ring

import "testing"

// A task that wakes another may be stopped by it, be it in its deferred calls: it goes on up to its next wait, and no further.
func TestStopOfATaskThatRuns(t *testing.T) {
	k := onLoops(t, 1, Options{})
	said := ""
	on(t, k.Loops()[0], func(task *Task) {
		for _, unwinding := range []bool{false, true} {
			var first *Task
			var wake func()
			Go(task.Loop(), func(second *Task) {
				second.Suspend(func(w func()) { wake = w })
				first.Stop()
				said += "stopped "
			})
			first = Go(task.Loop(), func(first *Task) {
				defer func() {
					if unwinding {
						wake()
					}
					said += "over "
				}()
				first.Park()
				wake()
				said += "went on "
				first.Park()
				t.Error("a stopped task goes on")
			})
			if unwinding {
				first.Stop()
			} else {
				first.Unpark()
			}
			if !first.Finished() {
				t.Error("it is not over")
			}
		}
	})
	if said != "stopped went on over stopped over " {
		t.Error(said)
	}
}

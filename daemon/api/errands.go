package api

import "kring/ring"

// errands are pieces of work for partitions on several loops, for requests that are rare: each loop does its own as one
// task, in the order they were added, and finish is called here when all are done.
type errands struct {
	c      *Context
	byLoop [][]func(t *ring.Task, on *Context)
	left   int
}

func newErrands(c *Context) *errands {
	return &errands{c: c, byLoop: make([][]func(*ring.Task, *Context), len(c.Contexts))}
}

// add gives a loop one more piece of work. What it writes is read in finish alone.
func (e *errands) add(loop int, work func(t *ring.Task, on *Context)) {
	e.byLoop[loop] = append(e.byLoop[loop], work)
}

// run does it all. finish is called on the loop of e.c, at once if there is nothing to do.
func (e *errands) run(finish func()) {
	e.left = 1
	done := func() {
		if e.left--; e.left == 0 {
			finish()
		}
	}
	for i, works := range e.byLoop {
		if len(works) == 0 {
			continue
		}
		e.left++
		on := e.c.Contexts[i]
		on.On(e.c, func() {
			ring.Go(on.Loop, func(t *ring.Task) {
				for _, work := range works {
					work(t, on)
				}
				e.c.On(on, done)
			})
		})
	}
	done()
}

package controller

import (
	"errors"
	"time"

	"kring/metadata"
	"kring/ring"
)

// client asks the store in straight-line code. What a lost connection left unanswered is asked again: whoever writes must be
// ready to find its own first try done.
type client struct{ store metadata.Store }

// retryAfter is the pause before an operation whose answer was lost is tried again.
const retryAfter = 100 * time.Millisecond

// await runs start and waits until it calls done, be it at once or later.
func await(t *ring.Task, start func(done func())) {
	var wake func()
	fired := false
	start(func() {
		fired = true
		if wake != nil {
			wake()
		}
	})
	if !fired {
		t.Suspend(func(w func()) { wake = w })
	}
}

// answer is what one multi came to.
type answer struct {
	results []metadata.Result
	err     error
}

// inFlight bounds how many operations are asked for at once.
const inFlight = 1024

// each runs n independent asks side by side, at most inFlight at a time; one that lost its connection is asked again.
func each(t *ring.Task, n int, ask func(i int, done func(err error))) {
	todo := make([]int, n)
	for i := range todo {
		todo[i] = i
	}
	for len(todo) > 0 {
		part := todo[:min(len(todo), inFlight)]
		rest := todo[len(part):]
		var again []int
		left := len(part)
		await(t, func(done func()) {
			for _, i := range part {
				ask(i, func(err error) {
					if errors.Is(err, metadata.ErrConnectionLoss) {
						again = append(again, i)
					}
					if left--; left == 0 {
						done()
					}
				})
			}
		})
		if len(again) > 0 {
			t.Sleep(retryAfter)
		}
		todo = append(again, rest...)
	}
}

// doAll applies multis independently of each other, in one go.
func (c client) doAll(t *ring.Task, multis [][]metadata.Op) []answer {
	out := make([]answer, len(multis))
	each(t, len(multis), func(i int, done func(error)) {
		c.store.Do(multis[i], func(r []metadata.Result, err error) {
			out[i] = answer{r, err}
			done(err)
		})
	})
	return out
}

func (c client) do(t *ring.Task, ops ...metadata.Op) ([]metadata.Result, error) {
	a := c.doAll(t, [][]metadata.Op{ops})
	return a[0].results, a[0].err
}

// got is what a Get came to.
type got struct {
	data []byte
	stat metadata.Stat
	err  error
}

func (c client) getAll(t *ring.Task, paths []string, watch bool) []got {
	out := make([]got, len(paths))
	each(t, len(paths), func(i int, done func(error)) {
		c.store.Get(paths[i], watch, func(data []byte, st metadata.Stat, err error) {
			out[i] = got{data, st, err}
			done(err)
		})
	})
	return out
}

func (c client) get(t *ring.Task, path string, watch bool) ([]byte, metadata.Stat, error) {
	g := c.getAll(t, []string{path}, watch)[0]
	return g.data, g.stat, g.err
}

func (c client) exists(t *ring.Task, path string, watch bool) (st metadata.Stat, err error) {
	each(t, 1, func(_ int, done func(error)) {
		c.store.Exists(path, watch, func(s metadata.Stat, e error) {
			st, err = s, e
			done(e)
		})
	})
	return st, err
}

func (c client) children(t *ring.Task, path string, watch bool) (names []string, err error) {
	each(t, 1, func(_ int, done func(error)) {
		c.store.Children(path, watch, func(n []string, _ metadata.Stat, e error) {
			names, err = n, e
			done(e)
		})
	})
	return names, err
}

// nodeNames is what a Children came to.
type nodeNames struct {
	names []string
	err   error
}

func (c client) childrenAll(t *ring.Task, paths []string) []nodeNames {
	out := make([]nodeNames, len(paths))
	each(t, len(paths), func(i int, done func(error)) {
		c.store.Children(paths[i], false, func(names []string, _ metadata.Stat, err error) {
			out[i] = nodeNames{names, err}
			done(err)
		})
	})
	return out
}

// createPath makes a persistent node, and its parents without data where they are missing.
func (c client) createPath(t *ring.Task, path string, data []byte) error {
	_, err := c.do(t, metadata.Create(path, data))
	if errors.Is(err, metadata.ErrNoNode) {
		err = c.createPath(t, metadata.ParentPath(path), nil)
		if err == nil || errors.Is(err, metadata.ErrNodeExists) {
			_, err = c.do(t, metadata.Create(path, data))
		}
	}
	return err
}

// is is errors.Is, shorter to read in the many places that tell refusals apart.
func is(err, target error) bool { return errors.Is(err, target) }

package main

import (
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// linesWaiting bounds the bytes of lines that wait for a reader who does not read. What comes then is counted and dropped.
const linesWaiting = 1 << 20

// lineQueue is where lines wait for the goroutine that writes them. It begins with the first line.
type lineQueue struct {
	out  io.Writer
	lost func(n uint64, r slog.Record) []byte // the line for those dropped

	mu      sync.Mutex
	waiting []byte
	spare   []byte
	dropped uint64          // since the last time it was told
	writing bool            // the goroutine is at work
	empty   []chan struct{} // closed when nothing waits any more

	droppedAll atomic.Uint64
}

func newLineQueue(out io.Writer) *lineQueue { return &lineQueue{out: out} }

// add queues a whole line, or drops it where too much waits. It never waits for the reader.
func (q *lineQueue) add(line []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting)+len(line) > linesWaiting {
		q.dropped++
		q.droppedAll.Add(1)
		return
	}
	q.waiting = append(q.waiting, line...)
	if !q.writing {
		q.writing = true
		go q.write()
	}
}

// write writes until nothing waits.
func (q *lineQueue) write() {
	q.mu.Lock()
	for len(q.waiting) > 0 {
		lines, dropped := q.waiting, q.dropped
		q.waiting, q.dropped = q.spare[:0], 0
		q.mu.Unlock()
		q.out.Write(lines) // an error means that nobody will ever read it
		if dropped > 0 {
			q.out.Write(q.lost(dropped, slog.Record{Time: time.Now()}))
		}
		q.mu.Lock()
		q.spare = lines
	}
	q.writing = false
	for _, c := range q.empty {
		close(c)
	}
	q.empty = nil
	q.mu.Unlock()
}

// flush waits until all that was queued is written, at most so long.
func (q *lineQueue) flush(limit time.Duration) {
	q.mu.Lock()
	if !q.writing {
		q.mu.Unlock()
		return
	}
	written := make(chan struct{})
	q.empty = append(q.empty, written)
	q.mu.Unlock()
	select {
	case <-written:
	case <-time.After(limit):
	}
}

// lastWords is the queue that must be written out before the process ends.
var lastWords atomic.Pointer[lineQueue]

// How long the end of the process may wait for the reader of its log: at a proper end or a crash, and at a second signal.
const (
	lastPatience  = 2 * time.Second
	hurryPatience = 100 * time.Millisecond
)

func sayLastWords(limit time.Duration) {
	if q := lastWords.Load(); q != nil {
		q.flush(limit)
	}
}

package segment

import (
	"errors"
	"time"

	"kring/ring"
)

// Cleaning compacts a log as Kafka's cleaner does: of all records with one key below a certain offset the last one stays. First
// the keys of the dirty part (what came since the last cleaning) go into a map, as far as there is memory for it. Then the
// segments up to there are copied without what the map says is obsolete, small ones together, and the copies take the
// place of the originals, one group at a time. Readers that have the originals open go on reading them.
//
// A helper reads and looks at records, a stretch at a time. Meanwhile a task on the log's loop writes what the stretch before has left,
// and another one makes the copy before durable and exchanges it.

// CleanOptions say how to clean.
type CleanOptions struct {
	// Now is the wall clock in Unix ms.
	Now int64
	// Stable is the offset below which everything is committed and every transaction decided: nothing from there on is touched.
	Stable Offset
	// MapBytes is the most memory the map of keys takes, and MapLoad how full it may be (0 to 1).
	MapBytes int64
	MapLoad  float64
	// BufferBytes is half of what is read at a time, and about what is gathered for one write; the buffers take six times that.
	// A batch that is larger than what is read has one of its own.
	BufferBytes int
	// Throttle, if not nil, slows down reading and writing.
	Throttle *Throttle
}

// CleanStats is what a cleaning has done.
type CleanStats struct {
	// From is where the dirty part began, To the offset up to which the log is clean now.
	From, To Offset
	// IndexedBytes went through the map, ReadBytes and ReadRecords were copied or dropped.
	IndexedBytes, ReadBytes, WrittenBytes    int64
	ReadRecords, KeptRecords, InvalidRecords int64
	// Segments is how many were replaced, by Groups many.
	Segments, Groups int
	// Keys are those in the map, Full which part that is of what MapBytes allows (0 to 1), MapBytes its memory, BufferBytes that of
	// the buffers.
	Keys                  int
	Full                  float64
	MapBytes, BufferBytes int64
}

// ErrAbandoned: the log was closed, truncated or otherwise changed, or StopCleaning was called. The log is as good as before.
var ErrAbandoned = errors.New("cleaning was abandoned")

// Throttle bounds the bytes that cleanings of one loop read and write in a second. Its owner may change Rate at any time.
type Throttle struct {
	// Rate is in bytes per second; 0 or less is no limit.
	Rate float64
	owed float64 // bytes, as of at
	at   time.Duration
}

const (
	throttleLeast = 10 * time.Millisecond
	throttleMost  = 100 * time.Millisecond // a sleep is not longer, so that a stop need not wait
)

// spend notes n bytes and says how long to wait for them.
func (r *Throttle) spend(now time.Duration, n int) time.Duration {
	if r == nil || r.Rate <= 0 {
		return 0
	}
	r.owed = max(r.owed-(now-r.at).Seconds()*r.Rate, 0) + float64(n)
	r.at = now
	if wait := r.owed / r.Rate; wait >= throttleLeast.Seconds() {
		return time.Duration(min(wait, throttleMost.Seconds()) * float64(time.Second))
	}
	return 0
}

// most is how many of n bytes may be read before they are paid for.
func (r *Throttle) most(n int64) int64 {
	if r == nil || r.Rate <= 0 {
		return n
	}
	return min(n, int64(r.Rate*throttleMost.Seconds()))
}

// cleaning is one cleaning under way.
type cleaning struct {
	l       *Log
	t       *ring.Task
	o       CleanOptions
	c       compactor
	read    *cleanReader
	write   cleanWriter
	placing cleanPlace
	cuts    int
}

// Clean cleans the log once; t must be a task of its own. The log is usable all the time. With an error, what was not
// replaced yet is as it was, and the log knows how far it is clean: ErrAbandoned, one that ring.NoSpace knows, ErrOffline after
// a failed write, or that of a record that cannot be read.
func (l *Log) Clean(t *ring.Task, o CleanOptions) (CleanStats, error) {
	if err := l.refusal(); err != nil {
		return CleanStats{}, err
	}
	if l.cleaning {
		panic("segment: a log is cleaned twice at a time")
	}
	l.cleaning, l.cleanStop = true, false
	defer func() {
		l.cleaning = false
		l.notify()
	}()
	d, err := l.Dirt(t, o.Now, o.Stable)
	if err != nil || d.Dirty == 0 {
		return CleanStats{From: d.From, To: d.From}, err
	}
	k := &cleaning{l: l, t: t, o: o, cuts: l.cuts}
	k.c = compactor{now: o.Now, retention: l.conf.DeleteRetentionMs, from: d.From, upper: d.To}
	k.c.keys = newKeyMap(l.loop, o.MapBytes, o.MapLoad)
	size := max(o.BufferBytes, 1<<10)
	k.read, k.write = newCleanReader(k, 2*size), newCleanWriter(k, 2*size)
	defer k.release()
	end, err := k.clean(d)
	s := &k.c.stats
	s.From, s.To, s.Keys, s.MapBytes, s.BufferBytes = d.From, end, k.c.keys.keys, k.c.keys.memory(), k.read.memory()+4*int64(size)
	s.Full = float64(s.Keys) / float64(k.c.keys.most*keyParts)
	return *s, err
}

// StopCleaning lets a cleaning that is under way end soon, with ErrAbandoned.
func (l *Log) StopCleaning() {
	l.cleanStop = true
	l.notify()
}

// Cleaning says whether one is under way.
func (l *Log) Cleaning() bool { return l.cleaning }

// release gives back the buffers, unless a helper or the kernel has them: then the loop has ended, and nobody needs them.
func (k *cleaning) release() {
	if k.read.busy || k.write.busy {
		return
	}
	k.c.keys.release()
	k.read.release()
	k.write.release()
}

// clean returns the offset up to which the log is clean.
func (k *cleaning) clean(d Dirt) (Offset, error) {
	l := k.l
	l.warnReset(d)
	if err := k.whole(d.To); err != nil {
		return d.From, err
	}
	end, err := k.index(d)
	if err != nil || end <= d.From {
		return d.From, err
	}
	horizon := int64(0) // of records in old formats, which cannot say when they may go
	var work []*segment
	for _, s := range l.segs {
		if s.base < d.From {
			horizon = s.modMilli - l.conf.DeleteRetentionMs
		}
		if s.base < end {
			work = append(work, s)
		}
	}
	k.c.txns = cleanTxns{}
	for _, group := range l.cleanGroups(work, d.To) {
		if err = k.group(group, horizon); err != nil {
			break
		}
	}
	if placed := k.placed(); err == nil {
		err = placed
	}
	if err != nil {
		return d.From, err
	}
	l.setCleaned(end)
	return end, nil
}

// stopped is why the cleaning cannot go on; nil if it can. It is asked after each wait.
func (k *cleaning) stopped() error {
	l := k.l
	switch {
	case l.failed != nil:
		return l.failed
	case l.closed, l.closing, l.cleanStop, k.cuts != l.cuts:
		return ErrAbandoned
	}
	return nil
}

// pay waits until n more bytes may be read or written.
func (k *cleaning) pay(n int) error {
	wait := k.o.Throttle.spend(k.l.loop.Now(), n)
	for wait > 0 {
		k.t.Sleep(wait)
		if err := k.stopped(); err != nil {
			return err
		}
		wait = k.o.Throttle.spend(k.l.loop.Now(), 0)
	}
	return k.stopped()
}

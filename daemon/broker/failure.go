package broker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"time"

	"kring/daemon/api"
	"kring/replication/controller"
	"kring/ring"
	"kring/segment"
)

// A log dir whose disk fails is offline until the next start, with everything in it, as in Kafka: one operation that failed says that the
// others cannot be relied on. The partitions of other log dirs go on. Without any log dir, or without the one the store lies in, the
// broker stops.

// ErrLogDirs is what Options.Fatal is told when the broker stops because of its log dirs.
var ErrLogDirs = errors.New("no log dir to go on with")

// lost is a log dir that could not be opened at the start.
type lost struct {
	path  string
	cause error
}

// ofTheDisk says whether an error of an operation on a log tells of its disk. Files and rights that somebody took away under us, and
// descriptors that ran out, concern the one log; a full disk passes.
func ofTheDisk(err error) bool {
	var path *fs.PathError
	return errors.As(err, &path) && !ring.NoSpace(err) && !ring.NoDescriptors(err) && !ring.OfNames(err) && !errors.Is(err, ring.ErrTooLarge)
}

// lostBySync says whether a sync found no room for what had been written: then the page cache shows what the disk will never get, and
// that is no full disk that passes.
func lostBySync(err error) bool {
	var path *fs.PathError
	return errors.As(err, &path) && (path.Op == "fdatasync" || path.Op == "sync")
}

// failed is told, on its loop, that a log went offline: its log dir did, or the log's own directory is not what it was.
func (s *shard) failed(r *replica, err error) {
	s.resign(r)
	post(s.b.loop, func() { s.b.logFailed(r.dir, r.Partition, err) })
}

// resign ends the service of the groups whose journal has failed. It is called from inside the log, and so does it later.
func (s *shard) resign(r *replica) {
	if r.Topic == api.OffsetsTopic {
		post(s.loop, func() { s.ctx.GroupShard(r.Index).Drop() })
	}
}

// logFailed hears of a log that cannot be used any more.
func (b *Broker) logFailed(d *dir, p segment.Partition, err error) {
	d.spoiled = true
	if d.failed != nil {
		return
	}
	if ofTheDisk(err) || lostBySync(err) {
		b.dirFailed(d, err)
		return
	}
	b.log.Error("log went offline", "topic", p.Topic, "partition", p.Index, "error", err)
	b.announce()
	ring.Go(b.loop, func(t *ring.Task) { b.lookAtDir(t, d) }) // it may be gone as a whole
}

// announce has the controller ask which replicas are still there.
func (b *Broker) announce() {
	if b.recovered && !b.stopping {
		b.ctl.LogDirFailed()
	}
}

// lookAtDir fails a log dir that is not there any more or cannot be read, and logs whose directory is gone: what they write would go
// into files without a name.
func (b *Broker) lookAtDir(t *ring.Task, d *dir) {
	if d.failed != nil || b.stopping || len(b.shards) == 0 {
		return
	}
	before := make([][]*replica, len(b.shards)) // a directory that is made from now on may be missing in the list
	b.each(t, func(s *shard, done func()) {
		before[s.id] = s.replicas()
		done()
	})
	names, err := d.Look(t)
	switch {
	case b.stopping:
	case err == nil:
		b.each(t, func(s *shard, done func()) {
			for _, r := range before[s.id] {
				if name := r.Partition.String(); r.dir == d && !r.gone && r.log.Failed() == nil && !names[name] {
					r.log.Fail(&fs.PathError{Op: "list", Path: d.Path() + "/" + name, Err: fs.ErrNotExist})
				}
			}
			done()
		})
	case !ring.NoDescriptors(err):
		b.dirFailed(d, err)
	}
}

// dirFailed takes a log dir offline.
func (b *Broker) dirFailed(d *dir, cause error) {
	d.spoiled = true
	if d.failed != nil {
		return
	}
	var path *fs.PathError
	if errors.As(cause, &path) {
		cause = path // what the log has to say of it was said
	}
	d.failed = cause
	b.log.Error("log dir is offline until the next start, and every partition in it", "dir", d.Path(), "partitions", d.count, "cause", cause)
	b.showOffline()
	if b.stopping {
		return
	}
	b.upkeep.busy++
	b.spread(func(s *shard, done func()) {
		s.fail(d, cause)
		done()
	}, func() {
		ring.Go(b.loop, func(t *ring.Task) {
			d.mark(t)
			b.announce()
			b.goOn()
			for !d.marked && !b.stopping { // the disk may come back before we go
				t.Sleep(markAgain)
				d.mark(t)
			}
			b.upkeep.left(b)
		})
	})
}

// fail takes the logs of a log dir offline.
func (s *shard) fail(d *dir, cause error) {
	for _, r := range s.replicas() {
		if r.dir == d {
			r.log.Fail(cause)
		}
	}
}

// failLate does it for logs that were being opened when their log dir failed.
func (b *Broker) failLate(t *ring.Task) {
	for _, d := range b.dirs {
		if cause := d.failed; cause != nil {
			b.each(t, func(s *shard, done func()) {
				s.fail(d, cause)
				done()
			})
		}
	}
}

// markAgain is how long a log dir that could not be marked is left alone; a stop waits so long.
const markAgain = 100 * time.Millisecond

// mark leaves word for the next start. A disk that takes no files any more has lost nothing silently.
func (d *dir) mark(t *ring.Task) {
	if !d.marked && d.MarkFailed(t, d.failed) == nil {
		d.marked = true
	}
}

// goOn stops the broker if the log dirs that are left do not suffice.
func (b *Broker) goOn() {
	if err := b.enough(); err != nil {
		b.fail(err)
	}
}

// enough says why the broker cannot go on with the log dirs there are, nil if it can.
func (b *Broker) enough() error {
	left := 0
	for _, d := range b.dirs {
		if d.failed == nil {
			left++
		}
	}
	switch first := b.dirs[0]; {
	case left == 0 && len(b.static.LogDirs) > 1:
		return fmt.Errorf("%w: all of them have failed, %s last or first with: %w", ErrLogDirs, first.Path(), first.failed)
	case first.failed != nil:
		return fmt.Errorf("%w: %s, in which the store lies, has failed: %w", ErrLogDirs, first.Path(), first.failed)
	}
	return nil
}

// showOffline lets all loops know which log dirs are offline.
func (b *Broker) showOffline() {
	if b.node == nil {
		return
	}
	var paths []string
	for _, l := range b.lost {
		paths = append(paths, l.path)
	}
	for _, d := range b.dirs {
		if d.failed != nil {
			paths = append(paths, d.Path())
		}
	}
	b.node.SetOffline(paths)
}

// offline is how many log dirs are.
func (b *Broker) offline() int { return len(b.node.Offline()) }

// openFailed hears of a log that cannot be opened or made: for want of room it is tried again, and told of by unmade.tell; else its disk
// may be at fault, which is told of once.
func (b *Broker) openFailed(o *opening, err error) {
	o.dir.spoiled = true
	level := slog.LevelError
	if o.dir.failed != nil && ofTheDisk(err) {
		level = slog.LevelDebug
	}
	switch {
	case ring.NoSpace(err), ring.NoDescriptors(err):
		b.unmade.add(b, o, err)
		return
	case ofTheDisk(err):
		b.dirFailed(o.dir, err)
	}
	b.log.Log(context.Background(), level, "log cannot be opened", "topic", o.at.Topic, "partition", o.at.Index, "error", err)
}

// unmade are the logs that could not be opened or made because the disk was full or descriptors had run out. They are tried again.
type unmade struct {
	waiting map[segment.Partition]*opening
	order   []segment.Partition
	news    []unmadeIn
	timer   ring.Timer
	armed   bool
	busy    bool
}

// unmadeIn are those of a log dir that have not been told of yet.
type unmadeIn struct {
	dir   *dir
	names names
	cause error
}

// unmadeAgain is how long they wait.
const unmadeAgain = time.Second

func (u *unmade) add(b *Broker, o *opening, err error) {
	if u.waiting == nil {
		u.waiting = map[segment.Partition]*opening{}
		u.timer.Fire = func(*ring.Timer) { u.again(b) }
	}
	if u.waiting[o.at] == nil {
		u.order = append(u.order, o.at)
		i := slices.IndexFunc(u.news, func(n unmadeIn) bool { return n.dir == o.dir })
		if i < 0 {
			i = len(u.news)
			u.news = append(u.news, unmadeIn{dir: o.dir, cause: err})
		}
		u.news[i].names.addIf(true, o.at)
	}
	b.log.Debug("log cannot be opened for want of room", "topic", o.at.Topic, "partition", o.at.Index, "cause", err)
	o.options.Clean = false // what a first try has left half done is recovered
	u.waiting[o.at], o.cause = o, err
	u.arm(b)
}

// tell warns of the new ones, in a line for each log dir.
func (u *unmade) tell(b *Broker) {
	for i := range u.news {
		n := &u.news[i]
		b.log.Warn("logs cannot be opened for want of room; they will be as soon as there is some", "dir", n.dir.Path(),
			"partitions", n.names.count, "names", n.names.String(), "cause", n.cause)
	}
	u.news = nil
	u.publish(b)
}

// publish lets those who watch know how many there are.
func (u *unmade) publish(b *Broker) {
	if b.node == nil || len(u.order) == 0 && b.node.NoRoom() == nil {
		return
	}
	n := &api.NoRoom{Partitions: len(u.order)}
	for _, p := range u.order {
		if o := u.waiting[p]; !slices.Contains(n.Dirs, o.dir.Path()) {
			n.Dirs = append(n.Dirs, o.dir.Path())
			n.Causes = append(n.Causes, o.cause.Error())
		}
	}
	if n.Partitions == 0 {
		n = nil
	}
	b.node.SetNoRoom(n)
}

func (u *unmade) arm(b *Broker) {
	if !u.armed && !b.stopping && len(u.order) > 0 {
		u.armed = true
		b.loop.After(unmadeAgain, &u.timer)
	}
}

// fresh says whether p was never made: what checkpoints say under its name is another's.
func (u *unmade) fresh(p segment.Partition) bool {
	o := u.waiting[p]
	return o != nil && o.fresh
}

// drop forgets a partition.
func (u *unmade) drop(p segment.Partition) {
	if u.waiting[p] == nil {
		return
	}
	delete(u.waiting, p)
	for i, other := range u.order {
		if other == p {
			u.order = append(u.order[:i:i], u.order[i+1:]...)
			return
		}
	}
}

// again tries to open them; those that are open are led by the controller's leave.
func (u *unmade) again(b *Broker) {
	if u.armed = false; b.stopping || !b.recovered {
		u.arm(b)
		return
	}
	b.upkeep.busy++
	ring.Go(b.loop, func(t *ring.Task) {
		u.retry(t, b)
		b.upkeep.left(b)
		u.arm(b)
	})
}

func (u *unmade) retry(t *ring.Task, b *Broker) {
	work := make([][]*opening, len(b.shards))
	for _, p := range u.order {
		o := u.waiting[p]
		s := b.shardOf(p)
		work[s.id] = append(work[s.id], o)
	}
	b.each(t, func(s *shard, done func()) {
		mine := work[s.id]
		s.tasks(len(mine), func(t *ring.Task, i int) { mine[i].err = s.openWhole(t, mine[i]) }, done)
	})
	var back []controller.PartitionName
	for _, mine := range work {
		for _, o := range mine {
			switch err := o.err; {
			case u.waiting[o.at] != o: // removed meanwhile, or tried by others
				if err == nil && b.placed[o.at] == nil {
					s := b.shardOf(o.at)
					post(s.loop, func() { ring.Go(s.loop, func(t *ring.Task) { s.discard(t, o.at) }) })
				}
			case err == nil:
				u.drop(o.at)
				back = append(back, controller.PartitionName{Topic: o.at.Topic, Partition: o.at.Index})
			case !ring.NoSpace(err) && !ring.NoDescriptors(err):
				u.drop(o.at)
				b.openFailed(o, err)
			}
		}
	}
	b.failLate(t)
	u.publish(b)
	if len(u.order) > 0 {
		b.log.Debug("there is still no room for logs", "partitions", len(u.order))
	}
	if len(back) > 0 && !b.stopping {
		b.log.Info("logs could be opened at last", "partitions", len(back))
		b.ctl.ReplicasBack(back)
	}
}

// discard removes the log of a partition that is no longer wanted, and that nobody leads.
func (s *shard) discard(t *ring.Task, p segment.Partition) {
	if r := s.byName[p]; r != nil && r.part == nil {
		s.remove(r)
		if err := r.log.Remove(t); err != nil {
			s.b.log.Warn("a deleted partition could not be removed", "topic", p.Topic, "partition", p.Index, "cause", err)
		}
	}
}

// openWhole is openLog for a log that is tried again: only with its topic's id in it can it be led.
func (s *shard) openWhole(t *ring.Task, o *opening) error {
	if err := s.openLog(t, o); err != nil {
		return err
	}
	return s.byName[o.at].log.SetTopicID(t, o.options.TopicID)
}

// openLog opens or makes the log of a partition, unless the shard has it by then.
func (s *shard) openLog(t *ring.Task, o *opening) error {
	if s.byName[o.at] != nil {
		return nil
	}
	o.options.Files, o.options.Log = s.files, s.b.log
	l, err := segment.Open(t, o.options)
	if err == nil && s.byName[o.at] != nil {
		l.Abandon()
		return nil
	}
	if err == nil {
		s.add(&replica{Partition: o.at, dir: o.dir, log: l})
	}
	return err
}

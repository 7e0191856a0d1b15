package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"kring/ring"
)

const (
	lockFile       = ".lock"
	cleanFile      = ".kafka_cleanshutdown"
	cleanContent   = `{"version":0,"brokerEpoch":-1}`
	clusterLogName = "__cluster_metadata-0" // KRaft's, skipped as Kafka skips it
)

// Partition is a partition's name.
type Partition struct {
	Topic string
	Index int32
}

// DirOptions say what a log dir should be.
type DirOptions struct {
	// ClusterID and BrokerID must be those of meta.properties; it is written if absent. An empty ClusterID and a negative
	// BrokerID are not compared, and meta.properties is left alone then (see WriteMeta).
	ClusterID string
	BrokerID  int32
	Log       *slog.Logger
}

// Dir is a log dir, owned by the loop that opened it. It holds .lock until Close or Abandon.
type Dir struct {
	path   string
	loop   ring.Loop
	log    *slog.Logger
	unlock func()
	clean  bool
	// suspect: the file that MarkFailed leaves is there.
	suspect bool

	meta       Meta
	hasMeta    bool
	parts      []Partition
	leftovers  []string // "-delete" directories
	recovery   map[Partition]Offset
	starts     map[Partition]Offset
	watermarks map[Partition]Offset
	cleaned    map[Partition]Offset
	task       *ring.Task
}

// ReadMeta reads meta.properties of a log dir; false if there is none.
func ReadMeta(t *ring.Task, path string) (Meta, bool, error) {
	name := path + "/" + propertiesFile
	b, err := t.ReadFile(name, smallFileMax)
	if errors.Is(err, fs.ErrNotExist) {
		return Meta{}, false, nil
	}
	if err != nil {
		return Meta{}, false, err
	}
	m, err := decodeProperties(b)
	if err != nil {
		return Meta{}, false, fmt.Errorf("%s: %w", name, err)
	}
	return m, true, nil
}

// OpenDir makes (if absent), locks and reads a log dir, removes its clean-stop marker and lists its partitions. Every error is
// a reason not to start, in one line; the directory is as it was then.
func OpenDir(t *ring.Task, path string, o DirOptions) (*Dir, error) {
	d := &Dir{path: path, loop: t.Loop(), log: o.Log}
	if err := makeDurable(t, path); err != nil {
		return nil, fmt.Errorf("log dir %s cannot be made: %w", path, err)
	}
	unlock, err := d.loop.LockFile(path + "/" + lockFile)
	if err != nil {
		instead := ""
		if held := (*fs.PathError)(nil); errors.As(err, &held) && held.Op == "lock" {
			instead = ", or choose another directory"
		}
		return nil, fmt.Errorf("log dir %s cannot be locked: %w%s", path, err, instead)
	}
	d.unlock = unlock
	if err := d.open(t, o); err != nil {
		d.Abandon()
		return nil, err
	}
	return d, nil
}

// makeDurable makes a directory and its parents so that a power cut does not take their names back.
func makeDurable(t *ring.Task, path string) error {
	if _, err := t.List(path); err == nil {
		return nil
	}
	var fresh []string
	for p := filepath.Clean(path); ; p = filepath.Dir(p) {
		parent := filepath.Dir(p)
		fresh = append(fresh, parent)
		if _, err := t.List(parent); err == nil || parent == p {
			break
		}
	}
	if err := t.MakeDir(path); err != nil {
		return err
	}
	for _, parent := range fresh {
		if err := t.SyncDir(parent); err != nil {
			return err
		}
	}
	return nil
}

func (d *Dir) open(t *ring.Task, o DirOptions) (err error) {
	if d.meta, d.hasMeta, err = ReadMeta(t, d.path); err != nil {
		return err
	}
	if err := d.compare(o); err != nil {
		return err
	}
	if err := d.list(t); err != nil {
		return err
	}
	if !d.hasMeta && o.ClusterID != "" && o.BrokerID >= 0 {
		if err := d.WriteMeta(t, Meta{o.ClusterID, o.BrokerID}); err != nil {
			return err
		}
	}
	for name, into := range d.checkpoints() {
		if err := d.readCheckpoints(t, name, into); err != nil {
			return err
		}
	}
	if d.clean {
		if err := t.Remove(d.path + "/" + cleanFile); err != nil {
			return err
		}
		return t.SyncDir(d.path)
	}
	return nil
}

// checkpoints pairs the files with what they are read into, in a fixed order.
func (d *Dir) checkpoints() func(func(string, *map[Partition]Offset) bool) {
	return func(yield func(string, *map[Partition]Offset) bool) {
		_ = yield(recoveryFile, &d.recovery) && yield(logStartFile, &d.starts) &&
			yield(watermarkFile, &d.watermarks) && yield(cleanerFile, &d.cleaned)
	}
}

func (d *Dir) compare(o DirOptions) error {
	name := d.path + "/" + propertiesFile
	switch {
	case !d.hasMeta:
	case o.BrokerID >= 0 && d.meta.BrokerID != o.BrokerID:
		return fmt.Errorf("%s says broker.id=%d, but this is broker %d: wrong log.dirs or wrong broker.id", name, d.meta.BrokerID, o.BrokerID)
	case o.ClusterID != "" && d.meta.ClusterID != "" && d.meta.ClusterID != o.ClusterID:
		return fmt.Errorf("%s says cluster.id=%s, but the cluster is %s: wrong log.dirs or wrong zookeeper.connect",
			name, d.meta.ClusterID, o.ClusterID)
	}
	return nil
}

// list sorts out what is in the root: plain files of foreign names are nobody's business, foreign directories stop us as they
// stop Kafka.
func (d *Dir) list(t *ring.Task) error {
	entries, err := t.List(d.path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Dir {
			d.clean = d.clean || e.Name == cleanFile
			d.suspect = d.suspect || e.Name == failedFile
			continue
		}
		if e.Name == clusterLogName {
			continue
		}
		if p, ok := parsePartition(e.Name); ok {
			d.parts = append(d.parts, p)
			continue
		}
		if _, ok := parseMarked(e.Name, "delete"); ok {
			d.leftovers = append(d.leftovers, e.Name)
			continue
		}
		if _, ok := parseMarked(e.Name, "future"); ok {
			return fmt.Errorf("%s/%s: a partition is being moved between log dirs; let the old broker finish that first", d.path, e.Name)
		}
		if _, ok := parseMarked(e.Name, "stray"); ok {
			return fmt.Errorf("%s/%s: a stray partition, left by a KRaft broker; move it away", d.path, e.Name)
		}
		return fmt.Errorf("%s/%s is no partition's directory; a log dir must hold nothing else: move it away", d.path, e.Name)
	}
	slices.SortFunc(d.parts, Partition.compare)
	return nil
}

// readCheckpoints reads one file; a malformed one counts as empty, as in Kafka. That costs a longer recovery and a cleaning, and shows
// records again that were deleted in a segment's middle.
func (d *Dir) readCheckpoints(t *ring.Task, name string, into *map[Partition]Offset) error {
	b, err := t.ReadFile(d.path+"/"+name, checkpointMax)
	if errors.Is(err, fs.ErrNotExist) {
		return t.WriteFile(d.path, name, nil)
	}
	if err == nil {
		*into, err = decodeCheckpoints(b)
	}
	if err != nil && !unreadable(err) {
		return err
	}
	if err != nil && d.log != nil {
		d.log.Warn("a checkpoint file cannot be read and counts as empty", "file", d.path+"/"+name, "cause", err)
	}
	return nil
}

// WriteMeta writes meta.properties.
func (d *Dir) WriteMeta(t *ring.Task, m Meta) error {
	if err := t.WriteFile(d.path, propertiesFile, encodeProperties(m, d.loop.UnixMilli())); err != nil {
		return err
	}
	d.meta, d.hasMeta = m, true
	return nil
}

// Meta is what meta.properties says; false if there is none yet.
func (d *Dir) Meta() (Meta, bool) { return d.meta, d.hasMeta }

// Path is the log dir's path.
func (d *Dir) Path() string { return d.path }

// Clean says whether the last stop was clean.
func (d *Dir) Clean() bool { return d.clean && !d.suspect }

// Partitions lists the partitions found, sorted by topic and index.
func (d *Dir) Partitions() []Partition { return d.parts }

// Options are those to open a partition's log with, found or new; Config, Files and TopicID are the caller's.
func (d *Dir) Options(p Partition) Options {
	return Options{
		Dir: d.path + "/" + p.String(), Config: DefaultConfig(), Clean: d.Clean(), Suspect: d.suspect,
		RecoveryPoint: d.recovery[p], LogStart: d.starts[p], Cleaned: d.cleaned[p], Log: d.log,
	}
}

// HighWatermark is the one checkpointed at the last stop; false if there is none.
func (d *Dir) HighWatermark(p Partition) (Offset, bool) {
	o, ok := d.watermarks[p]
	return o, ok
}

// DeleteLeftovers removes the "-delete" directories found at start after a delay; it returns at once.
func (d *Dir) DeleteLeftovers(delayMs int64) {
	if len(d.leftovers) == 0 {
		return
	}
	d.task = ring.Go(d.loop, func(t *ring.Task) {
		t.Sleep(time.Duration(delayMs) * time.Millisecond)
		for _, name := range d.leftovers {
			if err := removeTree(t, d.path+"/"+name); err != nil && d.log != nil {
				d.log.Warn("a deleted partition could not be removed", "dir", d.path+"/"+name, "cause", err)
			}
		}
	})
}

// Close writes the clean-stop marker (if clean: every log was closed without an error, and the checkpoints are written) and lets
// the lock go.
func (d *Dir) Close(t *ring.Task, clean bool) error {
	if d.task != nil {
		d.task.Stop()
	}
	var err error
	if clean {
		err = t.WriteFile(d.path, cleanFile, []byte(cleanContent))
	}
	d.unlock()
	return err
}

// GiveUp is Abandon for a start that fails after OpenDir: the clean-stop marker is put back if there was one.
func (d *Dir) GiveUp(t *ring.Task) error { return d.Close(t, d.Clean()) }

// Abandon lets the lock go and leaves everything else: the next start recovers.
func (d *Dir) Abandon() {
	if d.task != nil {
		d.task.Stop()
	}
	d.unlock()
}

// openAtOnce is how many logs a loop opens at a time: mostly it waits for the kernel.
const openAtOnce = 16

// turns lets no more than so many tasks of a loop do at once what they share them for.
type turns struct {
	free    int
	waiting []func()
}

func (x *turns) take(t *ring.Task) {
	for x.free == 0 {
		t.Suspend(func(wake func()) { x.waiting = append(x.waiting, wake) })
	}
	x.free--
}

func (x *turns) give() {
	x.free++
	if len(x.waiting) > 0 {
		wake := x.waiting[0]
		x.waiting = x.waiting[1:]
		wake()
	}
}

// OpenAll opens logs on the calling loop, of which parallel at a time are recovered; opened is called after each, finished last.
func OpenAll(loop ring.Loop, all []Options, parallel int, opened func(i int, l *Log, err error), finished func()) {
	next, left := 0, len(all)
	if left == 0 {
		finished()
		return
	}
	recovering := &turns{free: max(parallel, 1)}
	for range min(max(parallel, openAtOnce), len(all)) {
		ring.Go(loop, func(t *ring.Task) {
			for next < len(all) {
				i := next
				next++
				all[i].recovering = recovering
				if p := all[i].Progress; p != nil && p.GivenUp {
					opened(i, nil, ErrGivenUp)
				} else {
					l, err := Open(t, all[i])
					opened(i, l, err)
				}
				left--
			}
			if left == 0 {
				left = -1
				finished()
			}
		})
	}
}

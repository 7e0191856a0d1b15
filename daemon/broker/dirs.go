package broker

import (
	"errors"
	"fmt"
	"io/fs"

	"kring/ring"
	"kring/segment"
)

// openDirs locks and reads every log dir.
func (b *Broker) openDirs(t *ring.Task) error {
	for _, path := range b.static.LogDirs {
		d, err := segment.OpenDir(t, path, segment.DirOptions{BrokerID: -1, Log: b.log})
		if err != nil && (len(b.dirs) == 0 || !unusable(err)) {
			return err // a first log dir that is offline would take the store along
		}
		if err != nil {
			b.log.Error("log dir is offline until the next start", "dir", path, "cause", err)
			b.lost = append(b.lost, lost{path, err})
			continue
		}
		b.dirs = append(b.dirs, newDir(d))
		for _, p := range d.Partitions() {
			if o, ok := d.HighWatermark(p); ok {
				b.marks[p] = o
			}
		}
	}
	return nil
}

// newDir takes a log dir whose files say what an earlier life has left in them.
func newDir(d *segment.Dir) *dir {
	x := &dir{Dir: d}
	for what := range kinds {
		x.lines.stale[what] = true
	}
	return x
}

// holdsCluster refuses a store that knows of no cluster where a log dir belongs to one: it is another's, or has lost what was in it. A new
// id in it would hide that.
func (b *Broker) holdsCluster(t *ring.Task) (known bool, err error) {
	if known, err = b.ctl.KnowsCluster(t); err != nil {
		return false, fmt.Errorf("reading the store: %w", err)
	}
	for _, d := range b.dirs {
		if m, ok := d.Meta(); ok && m.ClusterID != "" && !known {
			return false, fmt.Errorf("%s/meta.properties belongs to cluster %s, of which the store in %s knows nothing: restore its files, "+
				"kring-store-*", d.Path(), m.ClusterID, b.dirs[0].Path())
		}
	}
	return known, nil
}

// identify finds the broker's id and holds cluster and broker id against the log dirs'. It tells of what begins here, since that is what
// a log dir looks like whose name is misspelt: a cluster that the store did not know, and log dirs that are new to one it did.
func (b *Broker) identify(t *ring.Task, known bool) error {
	id := b.static.BrokerID
	for _, d := range b.dirs {
		m, ok := d.Meta()
		if !ok {
			continue
		}
		if m.ClusterID != "" && m.ClusterID != b.node.ClusterID {
			return fmt.Errorf("%s/meta.properties: cluster.id is %s, but the store's is %s: the log dir belongs to another cluster",
				d.Path(), m.ClusterID, b.node.ClusterID)
		}
		if id >= 0 && m.BrokerID >= 0 && m.BrokerID != id {
			return fmt.Errorf("%s/meta.properties: broker.id is %d, but %d is configured or stands in another log dir: set broker.id=%d or leave "+
				"it out, if these are this broker's log dirs; else look at log.dirs", d.Path(), m.BrokerID, id, m.BrokerID)
		}
		if m.BrokerID >= 0 {
			id = m.BrokerID
		}
	}
	var err error
	if b.node.ID, err = b.ctl.BrokerID(t, id); err != nil {
		return fmt.Errorf("finding a broker id: %w", err)
	}
	for _, d := range b.dirs {
		if _, ok := d.Meta(); ok {
			continue
		}
		if err := d.WriteMeta(t, segment.Meta{ClusterID: b.node.ClusterID, BrokerID: b.node.ID}); err != nil {
			if d == b.dirs[0] {
				return err
			}
			b.dirFailed(d, err)
			continue
		}
		if n := len(d.Partitions()); n > 0 {
			b.log.Warn("meta.properties was missing where there are partitions, and was written anew; those of another broker.id are not led: "+
				"stop, and write their id into it",
				"file", d.Path()+"/meta.properties", "broker.id", b.node.ID, "partitions", n)
		} else if known {
			b.log.Warn("log dir is new to this cluster; if there should be partitions in it, stop and look at log.dirs and at what is mounted there",
				"dir", d.Path(), "cluster.id", b.node.ClusterID)
		}
	}
	if !known {
		b.log.Info("new cluster made; if there should be one in the log dir, stop and look at log.dirs and at what is mounted there",
			"cluster.id", b.node.ClusterID, "dir", b.dirs[0].Path())
	}
	return nil
}

// closeDirs writes what the next start needs, marks the dirs clean if they are, and unlocks them.
func (b *Broker) closeDirs(t *ring.Task) error {
	var first error
	if b.store.Close != nil {
		if first = b.store.Close(t); first != nil {
			b.dirs[0].spoiled = true // its end is not what a clean stop leaves
		}
	}
	for _, d := range b.dirs {
		if d.failed != nil {
			d.mark(t)
		}
		if err := d.Close(t, !d.spoiled); err != nil && first == nil {
			first = err
		}
	}
	b.dirs = nil
	return first
}

// unusable says whether an error of opening a log dir tells of its disk or of rights, and neither of what it holds nor of another broker.
func unusable(err error) bool {
	var path *fs.PathError
	return errors.As(err, &path) && path.Op != "lock"
}

// place chooses the log dir for a new partition: of those that are well the one with the fewest.
func (b *Broker) place(p segment.Partition) *dir {
	if d := b.placed[p]; d != nil {
		return d
	}
	best := b.dirs[0]
	for _, d := range b.dirs[1:] {
		if d.failed == nil && (best.failed != nil || d.count < best.count) {
			best = d
		}
	}
	b.occupy(p, best)
	return best
}

// occupy and vacate keep the books of what lies where.
func (b *Broker) occupy(p segment.Partition, d *dir) {
	b.placed[p] = d
	d.count++
}

func (b *Broker) vacate(p segment.Partition) {
	if d := b.placed[p]; d != nil {
		d.count--
		delete(b.placed, p)
	}
}

package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"kring/ring"
)

// Place is a partition's directory, and what its log dir says of it.
type Place struct {
	Partition
	Dir             string
	Clean           bool
	RecoveryPoint   Offset
	LogStart        Offset
	watermark, tidy Offset // of the high watermark and the cleaner; -1 if they are not there
}

// VerifyDir looks at the files of a log dir itself, tells what is wrong with them, and lists the partitions in it.
func VerifyDir(dir string, o VerifyOptions) ([]Place, error) {
	entries, err := o.List(dir)
	if err != nil {
		return nil, err
	}
	v := &verifier{o: &o, d: dumper{o: DumpOptions{Open: o.Open}}, dir: dir, have: map[string]bool{}}
	clean := false
	var parts []Partition
	for _, e := range entries {
		p, ok := parsePartition(e.Name)
		switch {
		case e.Special && (e.Name == propertiesFile || slices.Contains(checkpointFiles, e.Name)):
			v.tell(e.Name, -1, "move it away", "it is no regular file")
		case !e.Dir:
			v.have[e.Name] = !e.Special
			clean = clean || e.Name == cleanFile
		case e.Name == clusterLogName:
		case ok:
			parts = append(parts, p)
		default:
			v.directory(e)
		}
	}
	b, ok, err := v.small(propertiesFile)
	if err == nil && ok {
		_, err = decodeProperties(b)
	}
	if err != nil && !unreadable(err) {
		return nil, err
	} else if err != nil {
		v.tell(propertiesFile, -1, "write it anew: version=0, broker.id=... and cluster.id=...; no broker starts with it", "%v", err)
	}
	var all [4]map[Partition]Offset
	for i, name := range checkpointFiles {
		b, _, err := v.small(name)
		if err == nil {
			all[i], err = decodeCheckpoints(b)
		}
		if err != nil && !unreadable(err) {
			return nil, err
		} else if err != nil {
			v.tell(name, -1, "kring log repair takes it for empty, as a start does; nothing can bring back what was in it", "%v", err)
		}
	}
	at := func(i int, p Partition) Offset {
		if o, ok := all[i][p]; ok {
			return o
		}
		return -1
	}
	var places []Place
	for _, p := range parts {
		places = append(places, Place{p, dir + "/" + p.String(), clean, at(0, p), max(at(1, p), 0), at(2, p), at(3, p)})
	}
	return places, nil
}

func (v *verifier) directory(e ring.Entry) {
	_, gone := parseMarked(e.Name, "delete")
	_, moving := parseMarked(e.Name, "future")
	_, stray := parseMarked(e.Name, "stray")
	switch {
	case gone:
		v.note(e.Name, "nothing: a broker removes it, file.delete.delay.ms after the deletion or its own start", "a deleted partition")
	case moving:
		v.tell(e.Name, -1, "let Kafka finish that first", "a partition that is being moved between log dirs")
	case stray:
		v.tell(e.Name, -1, "move it away", "a stray partition, left by a KRaft broker")
	default:
		v.tell(e.Name, -1, "move it away: no broker starts with it", "a directory that is no partition's")
	}
}

// PlaceOf finds out what the log dir of one partition's directory says of it.
func PlaceOf(dir string, o VerifyOptions) (Place, error) {
	p, ok := parsePartition(path.Base(dir))
	if !ok {
		return Place{}, fmt.Errorf("%s is no partition's directory, which is named <topic>-<partition>", dir)
	}
	o.Each = func(Finding) {}
	places, err := VerifyDir(path.Dir(dir), o)
	for _, x := range places {
		if x.Partition == p {
			return x, err
		}
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s: %w", dir, fs.ErrNotExist)
	}
	return Place{}, err
}

// Options are those to repair the partition's log with; Log is the caller's.
func (p Place) Options() Options {
	return Options{
		Dir: p.Dir, Config: DefaultConfig(), Clean: p.Clean,
		RecoveryPoint: max(p.RecoveryPoint, 0), LogStart: p.LogStart, Cleaned: max(p.tidy, 0),
	}
}

// Verify is VerifyPartition for a place in a log dir; it holds the checkpoints against the log, too.
func (p Place) Verify(o VerifyOptions) (*Health, error) {
	o.Clean, o.RecoveryPoint, o.LogStart = p.Clean, p.RecoveryPoint, p.LogStart
	h, err := VerifyPartition(p.Dir, o)
	if err != nil {
		return nil, err
	}
	parent := path.Dir(p.Dir)
	for _, c := range []struct {
		file string
		at   Offset
	}{{recoveryFile, p.RecoveryPoint}, {watermarkFile, p.watermark}, {cleanerFile, p.tidy}} {
		if c.at > h.End {
			o.Each(Finding{File: parent + "/" + c.file, Position: -1, Do: doNothing, Harmless: true,
				What: fmt.Sprintf("%v is said to be at %d, behind its log's end at %d", p.Partition, c.at, h.End)})
		}
	}
	return h, nil
}

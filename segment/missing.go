package segment

import (
	"slices"
	"strings"

	"kring/ring"
)

// Segments that are gone leave traces: an index without its log file, and leader epochs that begin before the first segment. A
// deletion that a stop has interrupted leaves them, too, but with files whose names end in .deleted. Kafka begins the log at the first
// segment that is there, and so does this one, but not without a word.

// traces are what a partition's directory tells of segments that are not there.
type traces struct {
	orphans []Offset // first offsets of segments of which an index is left, in order
	going   bool     // a deletion or a cleaning was under way
}

// tracesIn looks at a directory before anything in it is settled; entries are sorted by name.
func tracesIn(entries []ring.Entry) (x traces) {
	for _, e := range entries {
		base, suffix, ok := parseName(e.Name)
		switch {
		case !ok:
		case strings.HasSuffix(suffix, deletedSuffix), strings.HasSuffix(suffix, swapSuffix), strings.HasSuffix(suffix, cleanedSuffix):
			x.going = true
		case suffix == indexSuffix:
			byName := func(o ring.Entry, name string) int { return strings.Compare(o.Name, name) }
			if _, there := slices.BinarySearchFunc(entries, fileName(base, logSuffix), byName); !there {
				x.orphans = append(x.orphans, base)
			}
		}
	}
	return x
}

// tellMissing says which records were in segments that are gone, of those not below logStart, the log's checkpointed start.
func (l *Log) tellMissing(x traces, logStart Offset) {
	if x.going || len(l.segs) == 0 {
		return
	}
	tell := func(from, to Offset) {
		if from = max(from, logStart); from < to {
			l.warn("segments are gone, and the records in them are lost; see kring log verify", "from", from, "to", to-1)
		}
	}
	first := l.segs[0].base
	if len(l.epochs) > 0 && l.epochs[0].start < first {
		tell(l.epochs[0].start, first)
	} else if len(x.orphans) > 0 && x.orphans[0] < first {
		tell(x.orphans[0], first)
	}
	for _, base := range x.orphans {
		if base < first {
			continue
		}
		i := l.floor(base) + 1
		if i < len(l.segs) {
			tell(base, l.segs[i].base)
		} else {
			l.warn("the last segment is gone, and the records in it are lost; see kring log verify", "from", base)
		}
	}
}

package replication

import "kring/segment"

// Offset is the place of a record in its partition.
type Offset = segment.Offset

// NoEpoch is a leader epoch that is not given: nothing is checked.
const NoEpoch int32 = -1

// State is what the controller has said of a partition: who leads it, in which epochs, with which replicas.
type State struct {
	// Leader is the leading broker's id, -1 for none.
	Leader int32
	// LeaderEpoch rises with every election, PartitionEpoch with every change of the state.
	LeaderEpoch, PartitionEpoch int32
	// ISR and Replicas are broker ids.
	ISR, Replicas []int32
}

// follower is what a leader knows of another replica.
type follower struct {
	id int32
	// end is the offset the replica has fetched up to; -1 while it is not known in this epoch.
	end    Offset
	inSync bool
}

// leader is the leading replica's decisions, pure: facts in, decisions out.
type leader struct {
	epoch int32
	// end is the offset up to which our own log is written.
	end Offset
	// hw is the high watermark: every in-sync replica holds all offsets below it.
	hw Offset
	// minISR is min.insync.replicas.
	minISR    int
	followers []follower
}

// lead begins a leadership: nothing is known of the followers, and the high watermark starts where ours stood.
func (l *leader) lead(s State, self int32, end, hw Offset) {
	l.epoch, l.end, l.hw = s.LeaderEpoch, end, hw
	l.followers = l.followers[:0]
	for _, id := range s.Replicas {
		if id != self {
			l.followers = append(l.followers, follower{id: id, end: -1, inSync: has(s.ISR, id)})
		}
	}
}

// amend takes a new state of the same leader epoch: what is known of the replicas that stay is kept.
func (l *leader) amend(s State, self int32) {
	old := l.followers
	l.followers = make([]follower, 0, len(s.Replicas))
	for _, id := range s.Replicas {
		if id == self {
			continue
		}
		f := follower{id: id, end: -1, inSync: has(s.ISR, id)}
		for _, o := range old {
			if o.id == id {
				f.end = o.end
			}
		}
		l.followers = append(l.followers, f)
	}
}

// fetched notes that a replica holds everything below end. It says whether the replica is one of ours.
func (l *leader) fetched(id int32, end Offset) bool {
	for i := range l.followers {
		if l.followers[i].id == id {
			l.followers[i].end = end
			return true
		}
	}
	return false
}

// wrote notes how far our own log is written.
func (l *leader) wrote(end Offset) { l.end = max(l.end, end) }

// inSync is the number of in-sync replicas, ourselves included.
func (l *leader) inSync() int {
	n := 1
	for i := range l.followers {
		if l.followers[i].inSync {
			n++
		}
	}
	return n
}

// enough says whether acks=all can be promised. No more replicas are asked for than there are: a topic of one replica with
// min.insync.replicas=2 can be written (as Kafka since 3.7).
func (l *leader) enough() bool { return l.inSync() >= min(l.minISR, len(l.followers)+1) }

// advance raises the high watermark to the lowest end of the in-sync replicas, unless they are too few: then what was
// acknowledged by them alone could be lost with one of them (KAFKA-15583). It says whether it moved.
func (l *leader) advance() bool {
	if !l.enough() {
		return false
	}
	to := l.end
	for i := range l.followers {
		if f := &l.followers[i]; f.inSync {
			to = min(to, f.end)
		}
	}
	if to <= l.hw {
		return false
	}
	l.hw = to
	return true
}

func has(ids []int32, id int32) bool {
	for _, i := range ids {
		if i == id {
			return true
		}
	}
	return false
}

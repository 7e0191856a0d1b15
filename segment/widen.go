package segment

import (
	"kring/ring"
)

const (
	// resendMs is for how long after its last batch a producer may send one again: twice Kafka's delivery.timeout.ms and more.
	resendMs = 5 * 60_000
	// widenBytes is how much before the snapshot is read back, and widenEntries how many index entries at least: each stands for
	// one batch where batches are large. Few producers have more than five under way.
	widenBytes   = 512 << 10
	widenEntries = 16
	// widenScan is read at a time: large batches are skipped.
	widenScan = 64 << 10
)

// widen reads back what a snapshot does not keep: of the batches a producer may send again it names the last one only. Without
// the others a producer that lost its answers in a crash is told that its sequence numbers are out of order, takes a new epoch,
// and stores everything twice.
func (l *Log) widen(t *ring.Task, ps *producers) error {
	end, now, wanted := ps.end, l.loop.UnixMilli(), false
	for _, p := range ps.byID {
		wanted = wanted || p.n == 1 && now-p.timestamp < resendMs
	}
	if !wanted || end <= l.segs[0].base {
		return nil
	}
	from, err := l.before(t, end)
	if err != nil || from == end {
		return err
	}
	seen := map[int64]*producer{}
	err = l.replay(t, from, end, widenScan, func(_ *scan, _ *segment, h header) error {
		v := h.v2()
		if p := ps.get(v.ProducerID()); h.hasProducer() && !v.Control() && p != nil && p.n == 1 {
			x := seen[p.id]
			if x == nil {
				x = newProducer(p.id)
				seen[p.id] = x
			}
			x.add(v.ProducerEpoch(), producerBatch{
				last: h.last(), timestamp: v.MaxTimestamp(), lastSeq: v.LastSequence(), delta: v.LastOffsetDelta(),
			})
		}
		return nil
	})
	if err != nil {
		return err
	}
	for id, x := range seen {
		if p := ps.get(id); x.epoch == p.epoch && x.batches[x.n-1] == p.batches[0] {
			p.batches, p.n = x.batches, x.n
		}
	}
	return nil
}

// before gives the offset from which on as much as widen reads leads to end; end itself if an index has no entry to begin at.
func (l *Log) before(t *ring.Task, end Offset) (Offset, error) {
	bytes, entries, segments := int64(widenBytes), widenEntries, widenEntries
	for i := l.floor(end - 1); i >= 0 && l.segs[i].written > 0; i-- {
		s := l.segs[i]
		if err := l.loadIndex(t, s, 0); err != nil {
			return end, err
		}
		x, to := offsetIndex(s.index.mem), s.written
		n := x.len()
		for n > 0 {
			relative, position := x.at(n - 1)
			if s.base+Offset(relative) < end {
				break
			}
			n, to = n-1, int64(position)
		}
		for k := n - 1; k >= 0; k-- {
			if relative, position := x.at(k); n-k >= entries && to-int64(position) >= bytes {
				return s.base + Offset(relative), nil
			}
		}
		if n == 0 && to > widenBytes {
			return end, nil
		}
		end, bytes, entries, segments = s.base, bytes-to, entries-n, segments-1
		if bytes <= 0 && entries <= 0 || segments == 0 {
			break
		}
	}
	return end, nil
}

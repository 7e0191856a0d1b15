package coordinator

import (
	"math"
	"slices"
)

// Expire forgets offsets that nobody has used for the time of retention, and empty groups without offsets (KIP-211). It is
// called each offsets.retention.check.interval.ms.
func (s *Shard) Expire(now Now) { s.ExpireSome(len(s.order), math.MaxInt, now) }

// ExpireSome is Expire for a part of the groups, at most from many and until about most offsets were looked at. It gives how many are
// left: what to go on with in another turn, until that is 0. A group that comes or goes meanwhile may be missed until the next time.
func (s *Shard) ExpireSome(from, most int, now Now) (left int) {
	if s.life != serving {
		return 0
	}
	defer s.answer()
	for left = min(from, len(s.order)); left > 0 && most > 0; { // backwards, since a group may go
		left--
		most -= 1 + len(s.order[left].offsets.entries.slots)
		s.expire(s.order[left], now)
	}
	return left
}

func (s *Shard) expire(g *group, now Now) {
	places := s.expiring(g, now)
	if len(places) == 0 && (g.state != Empty || !g.offsets.empty() || len(g.pending) > 0 || g.expiring > 0) {
		return
	}
	g.expiring++
	s.forget(g, places, now, func(err error) {
		g.expiring--
		if err == nil {
			s.expired += uint64(len(places))
		}
	})
}

// expiring lists the offsets whose time is over: of an empty group, the retention counted from when it became empty; of a group
// that only holds offsets, and of topics its members are no longer subscribed to, from each commit. Commits that are under way or
// wait for the end of a transaction keep an offset.
func (s *Shard) expiring(g *group, now Now) []place {
	if g.expiring > 0 {
		return nil
	}
	dropped := false // only offsets of topics that nobody in the group is subscribed to
	since := int64(-1)
	switch {
	case g.protocolType != "" && g.state == Empty:
		since = g.stateMs
	case g.protocolType == consumerType && g.state == Stable && g.subscribed != nil:
		dropped = true
	case g.protocolType != "":
		return nil
	}
	retention := s.config.Retention.Milliseconds()
	return slices.Clone(s.those(g, func(k place, e *entry) bool {
		began := since
		if began == -1 {
			began = e.commitMs
		}
		over := now.UnixMilli-began >= retention
		if len(g.offsets.extras) > 0 {
			if until := g.offsets.extra(k).expireMs; until != -1 {
				over = now.UnixMilli >= until
			}
		}
		return over && e.base >= 0 && !g.offsets.unstable(k) && !(dropped && g.subscribed[s.topics.name(k)])
	}))
}

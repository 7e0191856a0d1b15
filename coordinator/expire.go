package coordinator

// Expire forgets offsets that nobody has used for the time of retention, and empty groups without offsets (KIP-211). It is
// called each offsets.retention.check.interval.ms.
func (s *Shard) Expire(now Now) {
	if s.life != serving {
		return
	}
	defer s.answer()
	for i := len(s.order) - 1; i >= 0; i-- { // backwards, since a group may go
		s.expire(s.order[i], now)
	}
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
	since := func(e *entry) int64 { return e.commitMs }
	switch {
	case g.protocolType != "" && g.state == Empty:
		if g.stateMs != -1 {
			since = func(*entry) int64 { return g.stateMs }
		}
	case g.protocolType == consumerType && g.state == Stable && g.subscribed != nil:
	case g.protocolType == "":
	default:
		return nil
	}
	retention := s.config.Retention.Milliseconds()
	var places []place
	for _, k := range s.sorted(g) {
		e := g.offsets.entries.find(k)
		over := now.UnixMilli-since(e) >= retention
		if until := g.offsets.extra(k).expireMs; until != -1 {
			over = now.UnixMilli >= until
		}
		if !over || e.base < 0 || g.offsets.unstable(k) || g.state == Stable && g.subscribed[s.topics.name(k)] {
			continue
		}
		places = append(places, k)
	}
	return places
}

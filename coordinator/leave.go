package coordinator

// Leave lets members go: by their ids, or static ones by their instance ids alone.
func (s *Shard) Leave(l *Leave, now Now) {
	defer s.answer()
	defer s.reply(l)
	if l.Err = s.admits(l.Group, true); l.Err != nil {
		return
	}
	g := s.groups[l.Group]
	for i := range l.Members {
		if g == nil {
			l.Members[i].Err = ErrUnknownMember
			continue
		}
		l.Members[i].Err = s.leave(g, &l.Members[i], now)
	}
}

func (s *Shard) leave(g *group, l *LeaveMember, now Now) error {
	if l.Member == "" {
		if l.Instance == nil || g.instances[*l.Instance] == nil {
			return ErrUnknownMember
		}
		s.removeAndRebalance(g, g.instances[*l.Instance], leaving(*l.Instance, l), now)
		return nil
	}
	if p := g.pending[l.Member]; p != nil {
		s.removePending(g, p, now)
		return nil
	}
	m, err := g.member(l.Member, l.Instance)
	if err != nil {
		return err
	}
	s.removeAndRebalance(g, m, leaving(m.id, l), now)
	return nil
}

func leaving(who string, l *LeaveMember) string {
	if l.Reason == "" {
		return "member " + who + " leaves"
	}
	return "member " + who + " leaves: " + l.Reason
}

package coordinator

// Heartbeat keeps a member's session. It is answered at once; ErrRebalancing asks the member to join again.
func (s *Shard) Heartbeat(h *Heartbeat, now Now) error {
	if err := s.admits(h.Group, true); err != nil {
		if err == ErrLoading {
			return nil // its session begins when the group is loaded
		}
		return err
	}
	g := s.groups[h.Group]
	if g == nil {
		return ErrUnknownMember
	}
	m, err := g.member(h.Member, h.Instance)
	if err != nil {
		return err
	}
	if h.Generation != g.generation {
		return ErrIllegalGeneration
	}
	s.startSession(m, now)
	if g.state == PreparingRebalance {
		return ErrRebalancing
	}
	return nil
}

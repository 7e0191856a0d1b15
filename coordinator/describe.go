package coordinator

import (
	"slices"
	"strings"
)

// groupType is the type of all groups here, as ListGroups names it (KIP-848).
const groupType = "classic"

// Describe shows a group. One that does not exist is Dead.
func (s *Shard) Describe(group string) (GroupView, error) {
	if err := s.admits(group, false); err != nil {
		return GroupView{}, err
	}
	g := s.groups[group]
	if g == nil {
		return GroupView{State: Dead}, nil
	}
	v := GroupView{State: g.state, ProtocolType: g.protocolType, Generation: g.generation, Members: make([]MemberView, len(g.order))}
	if g.state == Stable {
		v.Protocol = *g.protocol
	}
	for i, m := range g.order {
		v.Members[i] = MemberView{Member: m.id, Instance: m.instance, ClientID: m.clientID, ClientHost: m.clientHost}
		if g.state == Stable {
			v.Members[i].Metadata, v.Members[i].Assignment = m.metadata(v.Protocol), m.assignment
		}
	}
	return v, nil
}

// List visits the groups in one of the states and of one of the types, by name regardless of case; empty lists are no
// condition. While the shard loads, or if it does not serve, it says so and visits none.
func (s *Shard) List(states, types []string, visit func(Listed)) error {
	switch {
	case s.life == loading:
		return ErrLoading
	case s.life != serving:
		return ErrNotCoordinator
	case !among(groupType, types):
		return nil
	}
	for _, g := range s.order {
		if among(g.state.String(), states) {
			visit(Listed{g.id, g.protocolType, g.state, groupType})
		}
	}
	return nil
}

func among(name string, names []string) bool {
	return len(names) == 0 || slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}

package controller

import (
	"slices"
	"strings"

	"kring/metadata"
	"kring/ring"
)

// The parents of nodes with quotas.
const (
	pathUsers   = "/config/users"
	pathClients = "/config/clients"
	pathIPs     = "/config/ips"
)

// QuotaMatch is what a filter asks of one part of an entity; the zero one asks nothing.
type QuotaMatch struct {
	Asked bool
	Any   bool // whatever is named there
	QuotaName
}

// QuotaFilter says which quotas are looked for. A strict one finds no entity with a part it does not ask for.
type QuotaFilter struct {
	User, Client, IP QuotaMatch
	Strict           bool
}

// finds tells whether an entity is one of those looked for.
func (f QuotaFilter) finds(e QuotaEntity) bool {
	return f.User.finds(e.User, f.Strict) && f.Client.finds(e.Client, f.Strict) && f.IP.finds(e.IP, f.Strict)
}

func (m QuotaMatch) finds(n QuotaName, strict bool) bool {
	switch {
	case !m.Asked:
		return !n.Named || !strict
	case m.Any:
		return n.Named
	}
	return n == m.QuotaName
}

// ClientQuotas gives the quotas that a filter finds, in the order of their names. done comes later; its error is an *Error.
func (c *Controller) ClientQuotas(f QuotaFilter, done func([]ClientQuota, error)) {
	if c.closing(func() { done(nil, &Error{Kind: NotController}) }) {
		return
	}
	c.admin.run(func(t *ring.Task) {
		if c.fenced || c.stopped {
			done(nil, &Error{Kind: NotController})
			return
		}
		found, err := c.findQuotas(t, f)
		if err != nil {
			err = storeError(err)
		}
		done(found, err)
	})
}

func (c *Controller) findQuotas(t *ring.Task, f QuotaFilter) ([]ClientQuota, error) {
	nodes, err := c.quotaNodes(t, f)
	if err != nil {
		return nil, err
	}
	paths := make([]string, len(nodes))
	for i, n := range nodes {
		paths[i] = n.path
	}
	var found []ClientQuota
	for i, g := range c.store.getAll(t, paths, false) {
		if is(g.err, metadata.ErrNoNode) {
			continue
		}
		node, err := metadata.DecodeConfig(g.data)
		if err := firstError(g.err, err); err != nil {
			return nil, err
		}
		q := ClientQuota{Entity: nodes[i].entity}
		for _, s := range node.Config {
			if kind := quotaKindOf(s.Name, q.Entity); kind == noQuota || kind == secretQuota {
				continue
			}
			value, ok := readQuota(s.Value)
			if !ok {
				return nil, &Error{Kind: UnknownServerError}
			}
			q.Values = append(q.Values, QuotaValue{s.Name, value})
		}
		if len(q.Values) > 0 {
			found = append(found, q)
		}
	}
	return found, nil
}

// quotaNode is a node that may hold quotas.
type quotaNode struct {
	path   string
	entity QuotaEntity
}

// quotaNodes are those a filter may find, in order.
func (c *Controller) quotaNodes(t *ring.Task, f QuotaFilter) (all []quotaNode, err error) {
	add := func(path string, e QuotaEntity) {
		if f.finds(e) {
			all = append(all, quotaNode{path, e})
		}
	}
	parents := []string{pathUsers, pathClients, pathIPs}
	matches := []QuotaMatch{f.User, f.Client, f.IP}
	lists, err := c.quotaNames(t, parents, matches)
	if err != nil {
		return nil, err
	}
	var pairs []string
	var wanted []QuotaMatch
	for _, user := range lists[0] {
		add(pathUsers+"/"+user.node, QuotaEntity{User: user.name})
		pairs, wanted = append(pairs, pathUsers+"/"+user.node+"/clients"), append(wanted, f.Client)
	}
	if f.Client.Asked || !f.Strict {
		clients, err := c.quotaNames(t, pairs, wanted)
		if err != nil {
			return nil, err
		}
		for i, user := range lists[0] {
			for _, client := range clients[i] {
				add(pairs[i]+"/"+client.node, QuotaEntity{User: user.name, Client: client.name})
			}
		}
	}
	for _, client := range lists[1] {
		add(pathClients+"/"+client.node, QuotaEntity{Client: client.name})
	}
	for _, ip := range lists[2] {
		add(pathIPs+"/"+ip.node, QuotaEntity{IP: ip.name})
	}
	return all, nil
}

// namedNode is a node whose name says whom it is for.
type namedNode struct {
	node string
	name QuotaName
}

// quotaNames are the nodes under each parent that its match may find: all of them, or the one it asks for.
func (c *Controller) quotaNames(t *ring.Task, parents []string, matches []QuotaMatch) ([][]namedNode, error) {
	out := make([][]namedNode, len(parents))
	var ask []string
	var at []int
	for i, m := range matches {
		if m.Asked && !m.Any {
			out[i] = []namedNode{{m.node(), m.QuotaName}}
			continue
		}
		ask, at = append(ask, parents[i]), append(at, i)
	}
	for j, l := range c.store.childrenAll(t, ask) {
		if l.err != nil && !is(l.err, metadata.ErrNoNode) {
			return nil, l.err
		}
		for _, node := range l.names {
			n := QuotaName{Named: true, Default: node == metadata.DefaultEntity}
			if !n.Default {
				name, err := metadata.Desanitize(node)
				if err != nil {
					continue // none of Kafka's
				}
				n.Name = name
			}
			out[at[j]] = append(out[at[j]], namedNode{node, n})
		}
		slices.SortFunc(out[at[j]], func(a, b namedNode) int { return strings.Compare(a.node, b.node) })
	}
	return out, nil
}

// warnOfQuotas says once that quotas are kept and not enforced, if there are any.
func (c *Controller) warnOfQuotas(t *ring.Task) {
	if c.warnedOfQuotas {
		return
	}
	found, err := c.findQuotas(t, QuotaFilter{})
	if err != nil {
		c.log.Error("quotas cannot be read", "error", err)
		return
	}
	if len(found) > 0 {
		c.warnedOfQuotas = true
		c.log.Warn("quotas of clients are stored, but not enforced", "entities", len(found))
	}
}

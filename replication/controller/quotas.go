package controller

import (
	"fmt"
	"slices"
	"strings"

	"kring/metadata"
	"kring/ring"
)

// QuotaName is one part of whom a quota is for; the zero one is not named.
type QuotaName struct {
	Named   bool
	Default bool // those who have no quota of their own
	Name    string
}

// QuotaEntity is whom a quota is for: a user, a client id, both, or an address (KIP-55, KIP-257, KIP-612).
type QuotaEntity struct{ User, Client, IP QuotaName }

// QuotaOp sets one quota, or removes it.
type QuotaOp struct {
	Key    string
	Value  float64
	Remove bool
}

// AlterQuota changes the quotas of one entity.
type AlterQuota struct {
	Entity QuotaEntity
	Ops    []QuotaOp
}

// QuotaValue is a quota that is set.
type QuotaValue struct {
	Key   string
	Value float64
}

// ClientQuota are the quotas of an entity.
type ClientQuota struct {
	Entity QuotaEntity
	Values []QuotaValue
}

// quotaKind is how a quota is written.
type quotaKind uint8

const (
	noQuota quotaKind = iota
	doubleQuota
	longQuota
	intQuota
	secretQuota // no quota but a credential, which stands beside a user's
)

// quotaKindOf is the kind of a key. Those of addresses are others than those of users and clients.
func quotaKindOf(key string, e QuotaEntity) quotaKind {
	switch key {
	case "producer_byte_rate", "consumer_byte_rate":
		if !e.IP.Named {
			return longQuota
		}
	case "request_percentage", "controller_mutation_rate":
		if !e.IP.Named {
			return doubleQuota
		}
	case "connection_creation_rate":
		if e.IP.Named {
			return intQuota
		}
	case "SCRAM-SHA-256", "SCRAM-SHA-512":
		if e.User.Named {
			return secretQuota
		}
	}
	return noQuota
}

func (n QuotaName) node() string {
	if n.Default {
		return metadata.DefaultEntity
	}
	return metadata.Sanitize(n.Name)
}

// check refuses an entity that can have no quotas. The error is an *Error.
func (e QuotaEntity) check() error {
	for _, part := range []struct {
		kind string
		QuotaName
	}{{"user", e.User}, {"client-id", e.Client}, {"ip", e.IP}} {
		if part.Named && !part.Default && part.Name == "" {
			return &Error{InvalidRequest, fmt.Sprintf("Empty %s not supported", part.kind)}
		}
	}
	switch {
	case e == (QuotaEntity{}):
		return &Error{InvalidRequest, "Invalid empty client quota entity"}
	case e.IP.Named && (e.User.Named || e.Client.Named):
		return &Error{InvalidRequest, "Invalid quota entity combination, IP entity should not be used with user/client ID entity."}
	case e.IP.Named && !e.IP.Default && !isAddress(e.IP.node()):
		return &Error{InvalidRequest, e.IP.node() + " is not a valid IP or resolvable host."}
	}
	return nil
}

// path is the entity's path below /config.
func (e QuotaEntity) path() string {
	switch {
	case e.IP.Named:
		return "ips/" + e.IP.node()
	case e.User.Named && e.Client.Named:
		return "users/" + e.User.node() + "/clients/" + e.Client.node()
	case e.User.Named:
		return "users/" + e.User.node()
	}
	return "clients/" + e.Client.node()
}

// isAddress tells whether a node's name is an IPv4 address, the only ones Kafka takes: it looks the colons of others up encoded.
func isAddress(name string) bool {
	if name == "localhost" {
		return true
	}
	parts := strings.Split(name, ".")
	for _, p := range parts {
		n, ok := metadata.ParseID(p)
		if !ok || n > 255 {
			return false
		}
	}
	return len(parts) == 4
}

// AlterQuotas changes quotas, each entity by itself; done comes when they are stored, one error (or nil) each.
func (c *Controller) AlterQuotas(alter []AlterQuota, validateOnly bool, done func([]error)) {
	c.alter(len(alter), done, func(t *ring.Task, i int) error { return c.alterQuota(t, &alter[i], validateOnly) })
}

func (c *Controller) alterQuota(t *ring.Task, a *AlterQuota, validateOnly bool) error {
	if err := a.Entity.check(); err != nil {
		return err
	}
	entity := a.Entity.path()
	next, err := c.readConfig(t, "/config/"+entity)
	if err != nil {
		return storeError(err)
	}
	for _, op := range a.Ops {
		if op.Remove {
			next = next.Without(op.Key)
			continue
		}
		text, err := writeQuota(op, quotaKindOf(op.Key, a.Entity))
		if err != nil {
			return err
		}
		next = next.With(op.Key, text)
	}
	if validateOnly {
		return nil
	}
	if !sound(next, a.Entity) {
		return &Error{Kind: UnknownServerError}
	}
	gone := false
	if len(next) == 0 {
		if gone, err = c.removeQuotas(t, a.Entity); err != nil {
			return storeError(err)
		}
	}
	if !gone {
		if err := c.writeConfigs(t, []configWrite{{"/config/" + entity, next}})[0]; err != nil {
			return err
		}
	}
	node := metadata.ConfigChangeNode{Entity: entity}
	if _, err := c.store.do(t, metadata.CreateSequential(metadata.ConfigChangePrefix, node.Encode())); err != nil {
		return storeError(err)
	}
	return nil
}

// removeQuotas removes the node of an entity that has no quotas left, and what it leaves empty above it. It is false if there are
// nodes below: then the node stays, empty.
func (c *Controller) removeQuotas(t *ring.Task, e QuotaEntity) (bool, error) {
	path := "/config/" + e.path()
	below, err := c.store.children(t, path, false)
	if err != nil && !is(err, metadata.ErrNoNode) {
		return false, err
	}
	if len(below) > 0 {
		return false, nil
	}
	remove := []string{path}
	if e.User.Named && e.Client.Named {
		clients := metadata.ParentPath(path)
		user := metadata.ParentPath(clients)
		lists := c.store.childrenAll(t, []string{clients, user})
		own, err := c.readConfig(t, user)
		if err := firstError(lists[0].err, lists[1].err, err); err != nil && !is(err, metadata.ErrNoNode) {
			return false, err
		}
		if slices.Equal(lists[0].names, []string{e.Client.node()}) {
			remove = append(remove, clients)
			if len(own) == 0 && slices.Equal(lists[1].names, []string{"clients"}) {
				remove = append(remove, user)
			}
		}
	}
	for _, path := range remove {
		if _, err := c.store.do(t, metadata.Delete(path, metadata.AnyVersion)); err != nil && !is(err, metadata.ErrNoNode) {
			return false, err
		}
	}
	return true, nil
}

// sound tells whether a node holds what such nodes may: Kafka writes no other, which would lose what another version has set.
func sound(config metadata.Config, e QuotaEntity) bool {
	for _, s := range config {
		switch quotaKindOf(s.Name, e) {
		case noQuota:
			return false
		case secretQuota:
			if e.User.Default || e.Client.Named {
				return false
			}
		default:
			if _, ok := readQuota(s.Value); !ok {
				return false
			}
		}
	}
	return true
}

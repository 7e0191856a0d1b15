package controller

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"kring/metadata"
	"kring/ring"
)

// ScramMechanisms are the names of the mechanisms (KIP-554), which are keys of a user's configuration, in the order of their numbers,
// from 1.
var ScramMechanisms = [...]string{"SCRAM-SHA-256", "SCRAM-SHA-512"}

// ScramUser is what may be told of a user's credentials: how often each mechanism hashes, 0 where there is none for it. Salt and keys
// stay in the store.
type ScramUser struct {
	Name       string
	Iterations [len(ScramMechanisms)]int32
	Broken     bool // a credential cannot be read
}

// Any says whether there is a credential at all.
func (u *ScramUser) Any() bool {
	return u.Broken || u.Iterations != [len(ScramMechanisms)]int32{}
}

// ScramUsers reads the credentials of the users named, in that order, or of all that have some, in the order of their nodes. done comes
// later; its error is an *Error.
func (c *Controller) ScramUsers(names []string, all bool, done func([]ScramUser, error)) {
	if c.closing(func() { done(nil, &Error{Kind: NotController}) }) {
		return
	}
	c.admin.run(func(t *ring.Task) {
		if c.fenced || c.stopped {
			done(nil, &Error{Kind: NotController})
			return
		}
		found, err := c.scramUsers(t, names, all)
		if err != nil {
			err = storeError(err)
		}
		done(found, err)
	})
}

func (c *Controller) scramUsers(t *ring.Task, names []string, all bool) ([]ScramUser, error) {
	nodes := make([]string, len(names))
	for i, name := range names {
		nodes[i] = metadata.Sanitize(name)
	}
	if all {
		l := c.store.childrenAll(t, []string{pathUsers})[0]
		if l.err != nil && !is(l.err, metadata.ErrNoNode) {
			return nil, l.err
		}
		nodes = slices.Sorted(slices.Values(l.names))
	}
	users := make([]ScramUser, len(nodes))
	var paths []string
	var at []int
	for i, node := range nodes {
		name, err := metadata.Desanitize(node)
		if users[i].Name = name; err != nil {
			continue // none of Kafka's
		}
		switch node {
		case "": // nobody
		case ".", "..":
			users[i].Broken = true // no path has these
		default:
			paths, at = append(paths, pathUsers+"/"+node), append(at, i)
		}
	}
	for j, g := range c.store.getAll(t, paths, false) {
		if g.err == nil {
			users[at[j]].read(g.data)
		} else if !is(g.err, metadata.ErrNoNode) {
			return nil, g.err
		}
	}
	if all {
		users = slices.DeleteFunc(users, func(u ScramUser) bool { return !u.Any() })
	}
	return users, nil
}

func (u *ScramUser) read(data []byte) {
	node, err := metadata.DecodeConfig(data)
	u.Broken = err != nil
	for _, s := range node.Config {
		if i := slices.Index(ScramMechanisms[:], s.Name); i >= 0 {
			n, ok := iterationsOf(s.Value)
			u.Iterations[i] = n
			u.Broken = u.Broken || !ok
		}
	}
}

// iterationsOf reads a credential as Kafka writes it: salt=BASE64,stored_key=BASE64,server_key=BASE64,iterations=NUMBER.
func iterationsOf(credential string) (n int32, ok bool) {
	parts := map[string]string{}
	for _, part := range strings.Split(credential, ",") {
		key, value, _ := strings.Cut(part, "=")
		parts[key] = value
	}
	for _, key := range []string{"salt", "stored_key", "server_key"} {
		value, there := parts[key]
		if _, err := base64.StdEncoding.DecodeString(value); !there || err != nil {
			return 0, false
		}
	}
	count, err := strconv.ParseInt(parts["iterations"], 10, 32)
	return int32(count), err == nil && len(parts) == 4
}

package main

import (
	"fmt"
	"slices"
	"strings"

	"kring/metadata"
	"kring/metadata/embedded"
)

// namesMost is how many topics a message names.
const namesMost = 10

// topicsLost are the topics of old that are not in fresh: gone there, or others of the same name.
func topicsLost(fresh, old []embedded.Node) (lost []string) {
	there := topicIDs(fresh)
	for _, n := range old {
		name, is := topicOf(n)
		if !is {
			continue
		}
		id, kept := there[name]
		if !kept || id != idOf(n) {
			lost = append(lost, name)
		}
	}
	return lost
}

func topicIDs(nodes []embedded.Node) map[string]string {
	ids := map[string]string{}
	for _, n := range nodes {
		if name, is := topicOf(n); is {
			ids[name] = idOf(n)
		}
	}
	return ids
}

func topicOf(n embedded.Node) (name string, is bool) {
	if metadata.ParentPath(n.Path) != metadata.PathTopics || n.Stat.EphemeralOwner != 0 {
		return "", false
	}
	return strings.TrimPrefix(n.Path, metadata.PathTopics+"/"), true
}

func idOf(n embedded.Node) string {
	topic, err := metadata.DecodeTopic(n.Data)
	if err != nil {
		return string(n.Data)
	}
	return topic.ID.String()
}

// someOf is a list for a message, of its first names at most.
func someOf(names []string) string {
	if len(names) <= namesMost {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:namesMost], ", "), len(names)-namesMost)
}

// loses says what a side with the nodes old loses when it becomes fresh.
func loses(fresh, old []embedded.Node) string {
	w := difference(fresh, old)
	text := fmt.Sprintf("%s of its own", count(int64(len(w.remove)), "node"))
	if topics := topicsLost(fresh, old); len(topics) > 0 {
		text = fmt.Sprintf("%s (%s)", count(int64(len(topics)), "topic"), someOf(topics)) + " and " + text
	}
	return fmt.Sprintf("%s, and what differs in %s", text, count(int64(len(w.set)), "node"))
}

func refused(format string, args ...any) error {
	return &failure{exitData, fmt.Errorf(format, args...)}
}

// choice is the refusal of what would lose something of the store or of ZooKeeper, when nobody has said that it may.
func (h *handover) choice(s sides, store, zooKeeper []embedded.Node) error {
	return refused("%s: kring store import --replace puts the tree of ZooKeeper %s in the place of the store in %s (%s), which loses %s "+
		"(a copy is kept); kring store export --overwrite puts the store in the place of ZooKeeper's tree, which loses %s; --dry-run with "+
		"either shows more", s.since(), h.zooKeeper, h.logDirs[0], storeText(store), loses(zooKeeper, store), loses(store, zooKeeper))
}

// mayImport refuses to lose what only the store has.
func (h *handover) mayImport(s sides, store, zooKeeper []embedded.Node) error {
	switch {
	case s.same || !s.store:
		return nil
	case s.zooKeeper && !h.replace:
		return h.choice(s, store, zooKeeper)
	case s.zooKeeper:
		return nil
	case s.last.Before != nil:
		return refused("%s: ZooKeeper %s may have a part of it; kring store export finishes it", s.last.text(), h.zooKeeper)
	}
	return refused("%s only the store in %s was used: kring store export brings ZooKeeper %s up to it; to give up what is in the store (%s), "+
		"move %s/kring-store-* away, and import again", s.since(), h.logDirs[0], h.zooKeeper, loses(zooKeeper, store), h.logDirs[0])
}

// mayExport refuses to lose what only ZooKeeper has.
func (h *handover) mayExport(s sides, store, zooKeeper []embedded.Node) error {
	switch {
	case s.same || !s.zooKeeper || h.overwrite:
		return nil
	case s.store:
		return h.choice(s, store, zooKeeper)
	}
	return refused("%s only ZooKeeper %s was used: kring store import brings the store up to it; to give up what is in ZooKeeper (%s), "+
		"--overwrite", s.since(), h.zooKeeper, loses(store, zooKeeper))
}

// isEmpty tells a ZooKeeper, or a chroot, in which nothing is Kafka's.
func isEmpty(nodes []embedded.Node) bool {
	return !slices.ContainsFunc(nodes, func(n embedded.Node) bool { return n.Path != "/" && n.Stat.EphemeralOwner == 0 })
}

// mayCreate refuses to fill a ZooKeeper that is empty, most often the wrong one, when nobody has said that it may.
func (h *handover) mayCreate(last *mark) error {
	if h.create || last != nil && last.Before != nil && last.ZooKeeper == h.zooKeeper {
		return nil
	}
	where := "look at the address and the chroot"
	if last != nil && last.ZooKeeper != h.zooKeeper {
		where += "; the last hand-over: " + last.text()
	}
	return refused("ZooKeeper %s holds nothing of Kafka's: %s; if a whole new tree is to be made there, --create", h.zooKeeper, where)
}

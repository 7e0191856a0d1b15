package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"kring/metadata"
	"kring/metadata/embedded"
	"kring/ring"
)

// markFile stands beside a store and says what its store and a ZooKeeper had alike at the last hand-over: whichever differs from that was
// used since. Kafka passes over files in a log dir.
const markFile = "kring-store-handover"

// The hand-overs of a mark.
const (
	didImport = "import"
	begunIt   = "begun" // an export that may have written a part
	didExport = "export"
	undoneIt  = "undone" // an export, of which somebody has said that no Kafka has run since
)

// mark is the content of a markFile, as JSON.
type mark struct {
	Action    string `json:"action"`
	ZooKeeper string `json:"zookeeper"`
	At        string `json:"at"` // RFC 3339
	Epoch     int32  `json:"controllerEpoch"`
	Tree      string `json:"tree"` // treeSum of what both sides had
	// Before is ZooKeeper's controller epoch before an export that was begun and not finished: it is written last.
	Before *int32 `json:"before,omitempty"`
}

// readMark reads a log dir's mark; nil for none.
func readMark(dir string) (*mark, error) {
	name := dir + "/" + markFile
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, &failure{exitData, err}
	}
	m := &mark{}
	if !info.Mode().IsRegular() || info.Size() > 1<<20 {
		err = errors.New("it is no small file")
	} else if text, failed := os.ReadFile(name); failed != nil {
		err = failed
	} else if err = json.Unmarshal(text, m); err == nil && m.Tree == "" {
		err = errors.New("it does not say of which tree")
	}
	if err != nil {
		return nil, &failure{exitData, fmt.Errorf("%s, which says whether the store or ZooKeeper goes on, cannot be read: %w; without it, "+
			"kring store import and export ask which side is to win", name, err)}
	}
	return m, nil
}

// write puts the mark into a log dir, durably.
func (m *mark) write(t *ring.Task, dir string) error {
	m.At = time.UnixMilli(t.Loop().UnixMilli()).UTC().Format(time.RFC3339)
	text, err := json.Marshal(m)
	if err == nil {
		err = t.WriteFile(dir, markFile, append(text, '\n'))
	}
	if err != nil {
		return &failure{exitData, fmt.Errorf("writing %s/%s: %w", dir, markFile, err)}
	}
	return nil
}

func (m *mark) text() string {
	switch m.Action {
	case didImport:
		return fmt.Sprintf("imported from ZooKeeper %s at %s, controller epoch %d", m.ZooKeeper, m.At, m.Epoch)
	case begunIt:
		return fmt.Sprintf("an export to ZooKeeper %s was begun at %s and not finished", m.ZooKeeper, m.At)
	case undoneIt:
		return fmt.Sprintf("an export to ZooKeeper %s, controller epoch %d, was undone at %s", m.ZooKeeper, m.Epoch, m.At)
	}
	return fmt.Sprintf("exported to ZooKeeper %s at %s, controller epoch %d", m.ZooKeeper, m.At, m.Epoch)
}

// treeSum is one value for all that is not ephemeral in a tree, whose nodes are in the order of paths. The root is left out, as a chroot is
// made with any data.
func treeSum(nodes []embedded.Node) string {
	h := sha256.New()
	add := func(b []byte) {
		length := int64(len(b))
		if b == nil {
			length = -1
		}
		_ = binary.Write(h, binary.BigEndian, length)
		h.Write(b)
	}
	for _, n := range nodes {
		if n.Path != "/" && n.Stat.EphemeralOwner == 0 {
			add([]byte(n.Path))
			add(n.Data)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// sides says of two trees whether they differ, and which was used since the last hand-over.
type sides struct {
	last             *mark // nil: nobody knows
	same             bool
	store, zooKeeper bool // used since
}

func compare(last *mark, store, zooKeeper []embedded.Node) (s sides, err error) {
	ours, theirs := treeSum(store), treeSum(zooKeeper)
	s = sides{last: last, same: ours == theirs, store: true, zooKeeper: true}
	if last == nil || s.same {
		return s, nil
	}
	epoch, err := controllerEpoch(zooKeeper)
	if err != nil {
		return s, err
	}
	s.store, s.zooKeeper = ours != last.Tree, theirs != last.Tree
	switch {
	case last.Before != nil: // ZooKeeper may have a part, and lacks the rest
		s.store, s.zooKeeper = true, s.zooKeeper && epoch != metadata.ControllerEpoch(*last.Before)
	case epoch < metadata.ControllerEpoch(last.Epoch): // it has gone back to what was before the hand-over
		s.store = true
	}
	return s, nil
}

// since says in a few words what is known.
func (s sides) since() string {
	if s.last == nil {
		return "nothing says which of both was used last"
	}
	if s.store && s.zooKeeper {
		return "both sides were used since the last hand-over (" + s.last.text() + ")"
	}
	return "since the last hand-over (" + s.last.text() + ")"
}

// handedOver refuses to serve a store that was given to ZooKeeper: a Kafka may have gone on there.
func handedOver(dir string) error {
	m, err := readMark(dir)
	if err != nil || m == nil {
		return err
	}
	switch m.Action {
	case didExport:
		return &failure{exitData, fmt.Errorf("the store in %s was %s, and Kafka may have run since: kring store import takes over again, Kafka "+
			"stopped; if no Kafka has run there, kring store export --undo lets this store go on", dir, m.text())}
	case begunIt:
		return &failure{exitData, fmt.Errorf("%s: %s: kring store export finishes it, or --undo lets this store go on", dir, m.text())}
	}
	return nil
}

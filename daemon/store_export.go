package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-zookeeper/zk"
	"github.com/spf13/cobra"

	"kring/metadata"
	"kring/metadata/embedded"
	"kring/ring"
	"kring/segment"
)

func exportCommand() *cobra.Command {
	h := &handover{}
	cmd := &cobra.Command{
		Use:   "export [server.properties]",
		Short: "Bring a ZooKeeper up to the store in a log dir, so that Kafka can go on there",
		Long: `Write what has changed in the store of a log dir since its import to ZooKeeper, so that Kafka 3.9 starts there as the same broker
of the same cluster. Kring must be stopped. Only nodes that differ are written, and what is gone in the store is deleted; nodes that are
not Kafka's are left alone. An empty ZooKeeper gets the whole tree with --create. An export that was interrupted is done by another one.

After an export Kring does not start on the store, since Kafka may have gone on, until kring store import. If no Kafka has run, --undo
gives the store back to Kring without asking ZooKeeper.

Refused are a ZooKeeper of another cluster, one with a broker that is still registered, one that was used since the last hand-over,
unless --overwrite says that what only it has may be lost, and log dirs in use or with a store in another than the first.`,
		Args: atMost(1),
		Example: `  kring store export /etc/kafka/server.properties --dry-run
  kring store export /etc/kafka/server.properties
  kring store export --zookeeper localhost:2181/kafka --log-dir /var/lib/kafka`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := h.settle(args); err != nil {
				return err
			}
			return h.held(func(t *ring.Task, m segment.Meta) error {
				if h.undo {
					return h.undoExport(cmd, t)
				}
				return h.exportTree(cmd, t, m)
			})
		},
	}
	h.flags(cmd)
	f := cmd.Flags()
	f.BoolVar(&h.create, "create", false, "make the whole tree in a ZooKeeper that holds nothing of Kafka's")
	f.BoolVar(&h.overwrite, "overwrite", false, "put the store in the place of a tree that was used as well")
	f.BoolVar(&h.undo, "undo", false, "take the last export back, as no Kafka has run since: Kring may start again")
	cmd.MarkFlagsMutuallyExclusive("undo", "create")
	cmd.MarkFlagsMutuallyExclusive("undo", "overwrite")
	cmd.MarkFlagsMutuallyExclusive("undo", "dry-run")
	return cmd
}

func (h *handover) exportTree(cmd *cobra.Command, t *ring.Task, m segment.Meta) error {
	ours, err := storeIn(h.logDirs[0])
	if err == nil && ours == nil {
		err = &failure{exitData, fmt.Errorf("%s holds no store to export; kring store import makes one of ZooKeeper's tree", h.logDirs[0])}
	}
	if err != nil {
		return err
	}
	e, theirs, foreign, err := h.visit(cmd)
	if err != nil {
		return err
	}
	defer e.close()
	ours = slices.DeleteFunc(ours, func(n embedded.Node) bool { return n.Stat.EphemeralOwner != 0 || n.Path == "/" })
	ours, c, err := e.takeCensus(ours, m)
	if err != nil {
		return err
	}
	if err := h.mayWrite(e, ours, theirs, m); err != nil {
		return err
	}
	w, lost := difference(ours, theirs), topicsLost(ours, theirs)
	if !h.dryRun {
		if err := e.abandoned(0); err != nil { // nobody came while we read
			return err
		}
		if err := h.giveOver(t, e, w, ours, theirs, c); err != nil {
			return err
		}
	}
	s := handed{Action: "export", ZooKeeper: h.zooKeeper, LogDir: h.logDirs[0], DryRun: h.dryRun, Cluster: m.ClusterID, Broker: m.BrokerID,
		Epoch: int32(c.epoch), Topics: c.topics, Partitions: c.partitions, Nodes: len(ours), Bytes: c.bytes, LeftAlone: foreign}
	s.wrote(w, lost)
	if h.asJSON {
		return printJSON(cmd.OutOrStdout(), s)
	}
	h.sayExported(cmd.OutOrStdout(), &s)
	return nil
}

func (h *handover) sayExported(out io.Writer, s *handed) {
	did := "exported"
	if s.DryRun {
		did = "would export"
	}
	fmt.Fprintf(out, "%s cluster %s from the store in %s to ZooKeeper %s: %s\n", did, s.Cluster, s.LogDir, s.ZooKeeper, s.tree())
	s.changes(out, s.DryRun || h.verbose, "ZooKeeper")
	s.foreign(out)
	if !s.DryRun {
		fmt.Fprintln(out, "Kafka may start there now; before Kring does again: kring store import")
	}
}

// mayWrite refuses a ZooKeeper that is the wrong one, or has what the store has not.
func (h *handover) mayWrite(e *ensemble, ours, theirs []embedded.Node, m segment.Meta) error {
	last, err := readMark(h.logDirs[0])
	if err != nil {
		return err
	}
	if err := e.accepts(theirs, m); err != nil {
		return err
	}
	if isEmpty(theirs) {
		return h.mayCreate(last)
	}
	both, err := compare(last, ours, theirs)
	if err != nil {
		return &failure{exitData, fmt.Errorf("ZooKeeper %s: %s: %w", e.name, metadata.PathControllerEpoch, err)}
	}
	return h.mayExport(both, ours, theirs)
}

// giveOver writes, and has the mark say so before and after: neither a broker nor an import believes in half of a tree.
func (h *handover) giveOver(t *ring.Task, e *ensemble, w writes, ours, theirs []embedded.Node, c census) error {
	before, err := controllerEpoch(theirs)
	if err != nil {
		return err
	}
	epoch := int32(before)
	done := mark{Action: begunIt, ZooKeeper: h.zooKeeper, Epoch: int32(c.epoch), Tree: treeSum(ours), Before: &epoch}
	if err := done.write(t, h.logDirs[0]); err != nil {
		return err
	}
	if err := e.write(w); err != nil {
		return err
	}
	done.Action, done.Before = didExport, nil
	return done.write(t, h.logDirs[0])
}

// undoExport has a store go on that was given over, and that nobody has taken over.
func (h *handover) undoExport(cmd *cobra.Command, t *ring.Task) error {
	last, err := readMark(h.logDirs[0])
	if err != nil {
		return err
	}
	if last == nil || last.Action != didExport && last.Action != begunIt {
		return &failure{exitData, fmt.Errorf("%s: there is no export to undo; kring broker starts on the store as it is", h.logDirs[0])}
	}
	was := last.text()
	last.Action = undoneIt
	if err := last.write(t, h.logDirs[0]); err != nil {
		return err
	}
	if h.asJSON {
		return printJSON(cmd.OutOrStdout(), last)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "undone: %s\nKring may start on the store in %s again; before Kafka does: kring store export\n",
		was, h.logDirs[0])
	return nil
}

// accepts refuses a ZooKeeper of another cluster, or one that goes to KRaft.
func (e *ensemble) accepts(theirs []embedded.Node, m segment.Meta) error {
	refuse := func(format string, args ...any) error {
		return &failure{exitData, fmt.Errorf("ZooKeeper %s: %w", e.name, fmt.Errorf(format, args...))}
	}
	for _, n := range theirs {
		switch {
		case n.Path == "/migration":
			return refuse("/migration is there: the cluster has begun to move to KRaft")
		case n.Path == metadata.PathClusterID:
			if id, err := metadata.DecodeClusterID(n.Data); err != nil || id.ID != m.ClusterID {
				return refuse("it has cluster %s, but the log dir's meta.properties says %s", id.ID, m.ClusterID)
			}
		}
	}
	return nil
}

// writes are what makes one tree of another.
type writes struct {
	create, set, remove []embedded.Node // what is set or removed has the stat it must still have
	count               []embedded.Node // whose number of children ever created must rise, to that of the stat
	rewrite             []embedded.Node // whose version must rise, to that of the stat
}

// counted are the nodes whose children are named by a sequence: a number that was used must not come again.
var counted = []string{metadata.PathConfigChanges, metadata.PathISRChanges, metadata.PathLogDirEvents, "/kafka-acl-changes",
	"/kafka-acl-extended-changes"}

// difference finds what to write to theirs so that it is ours; both are in the order of paths.
func difference(ours, theirs []embedded.Node) (w writes) {
	there := make(map[string]embedded.Node, len(theirs))
	for _, n := range theirs {
		there[n.Path] = n
	}
	kept := make(map[string]bool, len(ours))
	for _, n := range ours {
		kept[n.Path] = true
		old, was := there[n.Path]
		switch {
		case !was:
			w.create = append(w.create, n)
		case string(old.Data) != string(n.Data) || (old.Data == nil) != (n.Data == nil):
			w.set = append(w.set, embedded.Node{Path: n.Path, Data: n.Data, Stat: old.Stat})
		}
		if slices.Contains(counted, n.Path) {
			w.count = append(w.count, n)
		}
		if n.Path == metadata.PathBrokerSeqID {
			w.rewrite = append(w.rewrite, n)
		}
	}
	for _, n := range slices.Backward(theirs) { // children before their parents
		if !kept[n.Path] && n.Path != "/" && n.Stat.EphemeralOwner == 0 {
			w.remove = append(w.remove, n)
		}
	}
	return w
}

func paths(nodes []embedded.Node) []string {
	out := make([]string, len(nodes))
	for i, n := range nodes {
		out[i] = n.Path
	}
	return out
}

// write does it, in as few steps as ZooKeeper takes, the controller's epoch last: until it is there, another export may follow. What was
// changed by another meanwhile refuses its step.
func (e *ensemble) write(w writes) error {
	if err := e.makeRoot(); err != nil {
		return err
	}
	acl := zk.WorldACL(zk.PermAll)
	var all []step
	for _, n := range w.create {
		all = append(all, step{n.Path, len(n.Data), &zk.CreateRequest{Path: e.path(n.Path), Data: n.Data, Acl: acl}})
	}
	for _, n := range w.remove {
		all = append(all, step{n.Path, 0, &zk.DeleteRequest{Path: e.path(n.Path), Version: n.Stat.Version}})
	}
	for _, n := range w.set {
		all = append(all, step{n.Path, len(n.Data), &zk.SetDataRequest{Path: e.path(n.Path), Data: n.Data, Version: n.Stat.Version}})
	}
	isEpoch := func(s step) bool { return s.path == metadata.PathControllerEpoch }
	var last []step
	if i := slices.IndexFunc(all, isEpoch); i >= 0 {
		last = []step{all[i]}
		all = slices.Delete(all, i, i+1)
	}
	if err := e.steps(all); err != nil {
		return err
	}
	if err := e.raise(w); err != nil {
		return err
	}
	return e.steps(last)
}

// step is one operation of a multi.
type step struct {
	path  string
	bytes int
	op    any
}

func (e *ensemble) steps(all []step) error {
	bar := progress(int64(len(all)), "nodes written")
	defer bar.Finish()
	for len(all) > 0 {
		n, bytes := 0, 0
		var ops []any
		for n < len(all) && n < multiMost && (n == 0 || bytes+all[n].bytes <= multiBytesMost) {
			bytes += all[n].bytes + len(all[n].path)
			ops = append(ops, all[n].op)
			n++
		}
		answers, err := e.conn.Multi(ops...)
		if err != nil {
			at := all[0].path
			for i, a := range answers {
				if a.Error != nil && errors.Is(err, a.Error) {
					at = all[i].path
					break
				}
			}
			return fmt.Errorf("%w; the export is not complete: do it again before Kafka starts", e.failed("writing", e.path(at), err))
		}
		_ = bar.Add(n)
		all = all[n:]
	}
	return nil
}

// makeRoot makes the chroot, as Kafka does.
func (e *ensemble) makeRoot() error {
	for i := 1; i <= len(e.chroot); i++ {
		if i < len(e.chroot) && e.chroot[i] != '/' {
			continue
		}
		if _, err := e.conn.Create(e.chroot[:i], nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return e.failed("making", e.chroot[:i], err)
		}
	}
	return nil
}

// raise makes counters that only rise by use as high as the store's: of children ever created, and of a node's versions.
func (e *ensemble) raise(w writes) error {
	acl := zk.WorldACL(zk.PermAll)
	for _, n := range w.count {
		_, st, err := e.conn.Get(e.path(n.Path))
		if err != nil {
			return e.failed("reading", e.path(n.Path), err)
		}
		var all []step
		name := e.path(n.Path) + "/kring-store-export"
		for more := created(n.Stat) - created(stat(st)); more > 0; more-- {
			all = append(all, step{n.Path, 0, &zk.CreateRequest{Path: name, Acl: acl}}, step{n.Path, 0, &zk.DeleteRequest{Path: name, Version: -1}})
		}
		if err := e.steps(all); err != nil {
			return err
		}
	}
	for _, n := range w.rewrite {
		_, st, err := e.conn.Get(e.path(n.Path))
		if err != nil {
			return e.failed("reading", e.path(n.Path), err)
		}
		var all []step
		for more := n.Stat.Version - st.Version; more > 0; more-- {
			all = append(all, step{n.Path, len(n.Data), &zk.SetDataRequest{Path: e.path(n.Path), Data: n.Data, Version: -1}})
		}
		if err := e.steps(all); err != nil {
			return err
		}
	}
	return nil
}

// created is how many children a node has ever had.
func created(st metadata.Stat) int32 { return (st.Cversion + st.NumChildren) / 2 }

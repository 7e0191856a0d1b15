package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"kring/metadata"
	"kring/metadata/embedded"
	"kring/ring"
	"kring/segment"
)

func importCommand() *cobra.Command {
	h := &handover{}
	cmd := &cobra.Command{
		Use:   "import [server.properties]",
		Short: "Copy a Kafka cluster's tree from ZooKeeper into the store of its broker's log dir",
		Long: `Copy the tree of a Kafka 3.9 cluster of one broker from ZooKeeper into the store in the broker's first log dir, so that
kring broker starts there as the same broker of the same cluster: topics and their ids, leader epochs, settings, the controller's
epoch, the producer ids given out. Kafka must be stopped. ZooKeeper is only read; what is ephemeral in it is not copied.

Refused are a cluster with a broker that is still registered, one whose partitions have replicas on other brokers, one that is under
way to KRaft or has a reassignment under way, nodes protected by ACLs, and log dirs of another cluster, in use, or with a store in
another than the first. A store that has not been used since its export is replaced; one that has is not, if ZooKeeper has not been
used: kring store export is what is missing then. Where both were used --replace says that ZooKeeper wins. The store is kept under
other names then, the last two of them.`,
		Args: atMost(1),
		Example: `  kring store import /etc/kafka/server.properties
  kring store import /etc/kafka/server.properties --dry-run --json
  kring store import --zookeeper localhost:2181/kafka --log-dir /var/lib/kafka --replace --wait 30s`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := h.settle(args); err != nil {
				return err
			}
			return h.held(func(t *ring.Task, m segment.Meta) error { return h.importTree(cmd, t, m) })
		},
	}
	h.flags(cmd)
	cmd.Flags().BoolVar(&h.replace, "replace", false, "put the tree in the place of a store that was used as well")
	return cmd
}

func (h *handover) importTree(cmd *cobra.Command, t *ring.Task, m segment.Meta) error {
	old, err := storeIn(h.logDirs[0])
	var damage *embedded.DamageError
	if errors.As(err, &damage) { // how far it came cannot be compared with ZooKeeper
		return &failure{exitData, fmt.Errorf("%w; to give up what is in it, move %s/kring-store-* away, and import again", err, h.logDirs[0])}
	} else if err != nil {
		return err
	}
	last, err := readMark(h.logDirs[0])
	if err != nil {
		return err
	}
	e, nodes, foreign, err := h.visit(cmd)
	if err != nil {
		return err
	}
	defer e.close()
	nodes, c, err := e.takeCensus(nodes, m)
	if err != nil {
		return err
	}
	keep := false
	if old != nil {
		both, err := compare(last, old, nodes)
		keep = both.store && !both.same
		if err == nil {
			err = h.mayImport(both, old, nodes)
		}
		if err != nil {
			return err
		}
	}
	if err := e.abandoned(0); err != nil { // nobody came while we read
		return err
	}
	s := handed{Action: "import", ZooKeeper: h.zooKeeper, LogDir: h.logDirs[0], DryRun: h.dryRun, Cluster: m.ClusterID, Broker: m.BrokerID,
		Epoch: int32(c.epoch), Topics: c.topics, Partitions: c.partitions, Nodes: len(nodes), Bytes: c.bytes, LeftAlone: foreign,
		Replaced: old != nil}
	s.wrote(difference(nodes, old), topicsLost(nodes, old))
	if !h.dryRun {
		ending, err := embedded.Replace(t, h.logDirs[0], nodes, keep)
		if err != nil {
			return &failure{exitData, fmt.Errorf("writing the store in %s: %w", h.logDirs[0], err)}
		}
		if ending != "" {
			s.Kept = h.logDirs[0] + "/kring-store-*" + ending
		}
		done := mark{Action: didImport, ZooKeeper: h.zooKeeper, Epoch: s.Epoch, Tree: treeSum(nodes)}
		if err := done.write(t, h.logDirs[0]); err != nil {
			return err
		}
	}
	if h.asJSON {
		return printJSON(cmd.OutOrStdout(), s)
	}
	h.sayImported(cmd.OutOrStdout(), &s)
	return nil
}

func (h *handover) sayImported(out io.Writer, s *handed) {
	did := "imported"
	if s.DryRun {
		did = "would import"
	}
	fmt.Fprintf(out, "%s cluster %s from ZooKeeper %s into the store in %s: %s\n", did, s.Cluster, s.ZooKeeper, s.LogDir, s.tree())
	if s.Replaced || h.verbose {
		s.changes(out, h.verbose, "the old store")
	}
	s.foreign(out)
	if s.Kept != "" {
		fmt.Fprintf(out, "the old store is kept as %s; the last two that were in use when they were replaced are\n", s.Kept)
	}
	if s.DryRun {
		return
	}
	start := "kring broker --override log.dirs=" + strings.Join(h.logDirs, ",")
	if h.file != "" {
		start = "kring broker " + h.file + " --override zookeeper.connect="
	}
	fmt.Fprintf(out, "broker %d goes on with: %s\nthe way back: stop it, and kring store export\n", s.Broker, start)
}

// storeIn reads the store in a log dir; nil for none.
func storeIn(dir string) ([]embedded.Node, error) {
	nodes, err := embedded.ReadFiles(os.DirFS(dir))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, &failure{exitData, fmt.Errorf("the store in %s: %w", dir, err)}
	}
	return nodes, nil
}

// storeText is a store in a few words.
func storeText(nodes []embedded.Node) string {
	topics, cluster := 0, "none"
	for _, n := range nodes {
		if metadata.ParentPath(n.Path) == metadata.PathTopics {
			topics++
		}
		if n.Path == metadata.PathClusterID {
			if id, err := metadata.DecodeClusterID(n.Data); err == nil {
				cluster = id.ID
			}
		}
	}
	return fmt.Sprintf("of cluster %s with %s", cluster, count(int64(topics), "topic"))
}

func controllerEpoch(nodes []embedded.Node) (metadata.ControllerEpoch, error) {
	for _, n := range nodes {
		if n.Path == metadata.PathControllerEpoch {
			return metadata.DecodeControllerEpoch(n.Data)
		}
	}
	return 0, nil
}

// census is what a tree holds.
type census struct {
	epoch              metadata.ControllerEpoch
	topics, partitions int
	bytes              int64
}

// takeCensus holds a tree against the log dirs it is to belong to, and leaves out what is ephemeral.
func (e *ensemble) takeCensus(nodes []embedded.Node, m segment.Meta) (kept []embedded.Node, c census, err error) {
	refuse := func(format string, args ...any) error {
		return &failure{exitData, fmt.Errorf("ZooKeeper %s: %w", e.name, fmt.Errorf(format, args...))}
	}
	cluster := ""
	for _, n := range nodes {
		if n.Stat.EphemeralOwner != 0 {
			continue
		}
		kept = append(kept, n)
		c.bytes += int64(len(n.Data))
		var err error
		switch {
		case n.Path == "/migration":
			err = errors.New("/migration is there: the cluster has begun to move to KRaft")
		case n.Path == metadata.PathReassign:
			err = errors.New(metadata.PathReassign + " is there: a reassignment of replicas is under way")
		case n.Path == metadata.PathControllerEpoch:
			c.epoch, err = metadata.DecodeControllerEpoch(n.Data)
		case n.Path == metadata.PathClusterID:
			var id metadata.ClusterIDNode
			id, err = metadata.DecodeClusterID(n.Data)
			cluster = id.ID
		case metadata.ParentPath(n.Path) == metadata.PathTopics:
			var partitions int
			partitions, err = ownTopic(strings.TrimPrefix(n.Path, metadata.PathTopics+"/"), n.Data, m.BrokerID)
			c.topics, c.partitions = c.topics+1, c.partitions+partitions
		}
		if err != nil {
			return nil, c, refuse("%w", err)
		}
	}
	switch {
	case cluster == "":
		return nil, c, refuse("there is no %s: no Kafka has run with it, or the chroot is another", e.path(metadata.PathClusterID))
	case cluster != m.ClusterID:
		return nil, c, refuse("it has cluster %s, but the log dir's meta.properties says %s", cluster, m.ClusterID)
	}
	return kept, c, nil
}

// ownTopic counts a topic's partitions and refuses one that has a replica on another broker.
func ownTopic(topic string, data []byte, broker int32) (int, error) {
	n, err := metadata.DecodeTopic(data)
	if err != nil {
		return 0, fmt.Errorf("topic %s: %w", topic, err)
	}
	for _, p := range n.Partitions {
		if len(p.Replicas) != 1 || p.Replicas[0] != broker {
			return 0, fmt.Errorf("the replicas of %s-%d are on brokers %v: only a cluster whose one broker is %d can be taken over",
				topic, p.Partition, p.Replicas, broker)
		}
	}
	return len(n.Partitions), nil
}

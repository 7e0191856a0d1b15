package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kring/daemon/config"
	"kring/ring"
	"kring/segment"
)

func storeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Hand the cluster's state over between ZooKeeper and the store in a log dir",
		Args:  cobra.ArbitraryArgs,
		Example: `  kring store import /etc/kafka/server.properties
  kring store export /etc/kafka/server.properties`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return wrong("there is no command %q; kring store --help lists them", "store "+args[0])
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(importCommand(), exportCommand())
	return cmd
}

// handover is what an import and an export have in common: whose store, and which ZooKeeper.
type handover struct {
	zooKeeper string
	logDirs   []string
	timeout   time.Duration
	wait      time.Duration
	dryRun    bool
	replace   bool // import: over what only the store has
	overwrite bool // export: over what only ZooKeeper has
	create    bool // export: in an empty ZooKeeper
	undo      bool // export: take the last one back
	verbose   bool
	asJSON    bool

	file string // server.properties, if one was given
	id   int32  // the configured broker id, -1 for none
}

func (h *handover) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&h.zooKeeper, "zookeeper", "z", "", "the ensemble, `host:port[,host:port...][/chroot]`; without it the file's")
	f.StringArrayVar(&h.logDirs, "log-dir", nil, "a log `dir`, in place of a file; the store is in the first")
	f.DurationVar(&h.timeout, "timeout", 10*time.Second, "how long ZooKeeper may take to answer")
	f.DurationVar(&h.wait, "wait", 0, "how long to wait until the session of a killed broker has ended")
	f.BoolVar(&h.dryRun, "dry-run", false, "only say what would be done")
	f.BoolVarP(&h.verbose, "verbose", "v", false, "name every node that is created, changed or deleted")
	f.BoolVar(&h.asJSON, "json", false, "one JSON object")
}

// settle finds the log dirs and the ensemble from flags and file.
func (h *handover) settle(args []string) error {
	h.file, h.id = first(args), -1
	switch {
	case h.file == "" && len(h.logDirs) == 0:
		return wrong("give server.properties or --log-dir")
	case h.file != "" && len(h.logDirs) > 0:
		return wrong("%s names the log dirs; leave out --log-dir", h.file)
	case h.file != "":
		if err := h.read(); err != nil {
			return err
		}
	}
	if h.zooKeeper == "" && !h.undo {
		if h.file != "" {
			return wrong("%s sets no zookeeper.connect; give --zookeeper host:port[/chroot]", h.file)
		}
		return wrong("give --zookeeper host:port[/chroot]")
	}
	if _, _, err := chrootOf(h.zooKeeper); err != nil {
		return err
	}
	for _, dir := range h.logDirs {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			if err == nil {
				err = fmt.Errorf("%s is not a directory", dir)
			}
			return &failure{exitData, err}
		}
	}
	return nil
}

// read takes what the file says; all else in it must be what a broker starts with, but for zookeeper.connect.
func (h *handover) read() error {
	text, err := os.ReadFile(h.file)
	if err != nil {
		return &failure{exitArguments, err}
	}
	cfg, _, err := config.Load(h.file, []string{"zookeeper.connect="})
	if err != nil {
		return unreadable(err)
	}
	h.logDirs, h.id = cfg.LogDirs, cfg.BrokerID
	properties, err := config.ParseProperties(text)
	if err != nil {
		return unreadable(err)
	}
	for _, p := range properties {
		switch value := strings.TrimSpace(p.Value); {
		case p.Key == "zookeeper.connect" && h.zooKeeper == "":
			h.zooKeeper = value
		case p.Key == "zookeeper.ssl.client.enable" && strings.EqualFold(value, "true"):
			return &config.Unsupported{Key: p.Key, Value: value, Why: "ZooKeeper is asked without TLS; leave the key out, and name a plain port"}
		}
	}
	return nil
}

// held runs work on a loop of its own, with the log dirs locked, and tells it whose they are.
func (h *handover) held(work func(t *ring.Task, m segment.Meta) error) (done error) {
	defer func() {
		for _, dir := range h.logDirs {
			if err := giveBack(dir); err != nil && done == nil {
				done = &failure{exitData, fmt.Errorf("giving what was made in %s to its owner: %w", dir, err)}
			}
		}
	}()
	kernel, err := ring.New(ring.Options{Loops: 1, Dirs: h.logDirs, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	loop := kernel.Loops()[0]
	var failed error
	err = kernel.Run(func() {
		ring.Go(loop, func(t *ring.Task) {
			defer kernel.Stop()
			for _, dir := range h.logDirs {
				unlock, err := h.lock(t, dir)
				if err != nil {
					failed = err
					return
				}
				defer unlock()
			}
			m, err := h.owner(t)
			if err == nil {
				err = misplaced(h.logDirs, h.dirsKey())
			}
			if err == nil {
				err = work(t, m)
			}
			failed = err
		})
	})
	if err != nil {
		return err
	}
	return failed
}

// dirsKey is what has named the log dirs.
func (h *handover) dirsKey() string {
	if h.file != "" {
		return "log.dirs"
	}
	return "--log-dir"
}

// lockPause is how often a lock that is held is tried for: nothing tells when it is given up.
const lockPause = 20 * time.Millisecond

// lock takes a log dir as a broker does; a broker that was killed may hold it for a little longer.
func (h *handover) lock(t *ring.Task, dir string) (func(), error) {
	for until := t.Loop().Now() + h.wait; ; t.Sleep(lockPause) {
		unlock, err := t.Loop().LockFile(dir + "/.lock")
		if status := startStatus(err); err != nil && (status != exitLocked || t.Loop().Now() >= until) {
			return nil, &failure{status, fmt.Errorf("log dir %s: %w", dir, err)}
		}
		if err == nil {
			return unlock, nil
		}
	}
}

// owner reads whose the log dirs are: they must agree.
func (h *handover) owner(t *ring.Task) (m segment.Meta, err error) {
	refuse := func(format string, args ...any) (segment.Meta, error) {
		return m, &failure{exitData, fmt.Errorf(format, args...)}
	}
	from := ""
	for _, dir := range h.logDirs {
		own, there, err := segment.ReadMeta(t, dir)
		switch {
		case err != nil:
			return m, &failure{exitData, err}
		case !there:
		case from == "":
			m, from = own, dir
		case own != m:
			return refuse("%s/meta.properties says broker %d of cluster %s, %s/meta.properties broker %d of cluster %s",
				from, m.BrokerID, m.ClusterID, dir, own.BrokerID, own.ClusterID)
		}
	}
	if from == "" {
		return refuse("%s has no meta.properties: no broker has run on it", h.logDirs[0])
	}
	if h.id >= 0 && h.id != m.BrokerID {
		return refuse("%s says broker.id=%d, %s/meta.properties %d: set broker.id=%d, or leave it out, or name the log dir of broker %d",
			h.file, h.id, from, m.BrokerID, m.BrokerID, h.id)
	}
	return m, nil
}

// handed is what came of it, for people and as JSON.
type handed struct {
	Action     string   `json:"action"`
	ZooKeeper  string   `json:"zookeeper"`
	LogDir     string   `json:"logDir"`
	DryRun     bool     `json:"dryRun"`
	Cluster    string   `json:"clusterId"`
	Broker     int32    `json:"brokerId"`
	Epoch      int32    `json:"controllerEpoch"`
	Topics     int      `json:"topics"`
	Partitions int      `json:"partitions"`
	Nodes      int      `json:"nodes"`
	Bytes      int64    `json:"bytes"`
	Created    []string `json:"created,omitempty"`
	Changed    []string `json:"changed,omitempty"`
	Deleted    []string `json:"deleted,omitempty"`
	LeftAlone  []string `json:"leftAlone,omitempty"`
	Lost       []string `json:"topicsLost,omitempty"` // that only the side that was written to had
	Replaced   bool     `json:"replaced,omitempty"`
	Kept       string   `json:"kept,omitempty"` // import: where the replaced store is
}

// wrote fills in what was, or would be, written.
func (s *handed) wrote(w writes, lost []string) {
	s.Created, s.Changed, s.Deleted, s.Lost = paths(w.create), paths(w.set), paths(w.remove), lost
}

// changes says what was, or would be, written to where.
func (s *handed) changes(out io.Writer, every bool, where string) {
	for _, part := range []struct {
		what  string
		paths []string
	}{{"create", s.Created}, {"change", s.Changed}, {"delete", s.Deleted}} {
		for _, path := range part.paths {
			if every {
				fmt.Fprintf(out, "%s %s\n", part.what, path)
			}
		}
	}
	fmt.Fprintf(out, "%d created, %d changed, %d deleted, the rest was there\n", len(s.Created), len(s.Changed), len(s.Deleted))
	if len(s.Lost) > 0 {
		fmt.Fprintf(out, "only %s had the %s\n", where, plural(len(s.Lost), "topic")+" "+someOf(s.Lost))
	}
}

func plural(n int, one string) string {
	if n == 1 {
		return one
	}
	return one + "s"
}

func (s *handed) tree() string {
	return fmt.Sprintf("%s with %s and %s, %s", count(int64(s.Nodes), "node"), count(int64(s.Topics), "topic"),
		count(int64(s.Partitions), "partition"), bytesText(float64(s.Bytes)))
}

// foreign names what stands in the same place and is not Kafka's.
func (s *handed) foreign(out io.Writer) {
	if len(s.LeftAlone) > 0 {
		fmt.Fprintf(out, "left alone, as not Kafka's: %s\n", strings.Join(s.LeftAlone, ", "))
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"kring/daemon/broker"
	"kring/daemon/config"
	"kring/metadata/embedded"
	"kring/ring"
	"kring/systemd"
)

// loopsMost is how many loops we choose ourselves; one moves more than a 10 Gbit/s link.
const loopsMost = 8

// loopsFor leaves half of the processors to the kernel's workers, the collector and the clients of a shared machine.
func loopsFor(processors int) int { return max(1, min(processors/2, loopsMost)) }

// Received bytes may fill so much of the memory in all, but each loop can always take some of the largest requests.
const (
	receiveMost  = 768 << 20
	receiveLeast = 384 << 20
)

func kernelOptions(cfg *config.Config, log *slog.Logger) ring.Options {
	loops := cfg.Loops
	if loops == 0 {
		loops = loopsFor(runtime.NumCPU())
	}
	return ring.Options{Loops: loops, MaxMemory: max(receiveMost/int64(loops), receiveLeast), WritePath: cfg.WritePath, Dirs: cfg.LogDirs,
		SendBuffer: int(cfg.SendBuffer), ReceiveBuffer: int(cfg.ReceiveBuffer), Log: log,
		Crashing: func() { sayLastWords(lastPatience) }}
}

// run is one broker on the kernel, from start to stop. Its fields belong to loop 0, but those that say otherwise.
type run struct {
	kernel *ring.Kernel
	cfg    *config.Config
	read   func() (*config.Config, error) // reads the settings again
	log    *logs
	out    io.Writer
	life   life            // any goroutine's
	keeper *systemd.Keeper // any goroutine's
	broker *broker.Broker
	asked  bool // to stop
	err    error
}

// settings are those of a start, and how to read them again when a signal asks for that.
type settings struct {
	*config.Config
	again  func() (*config.Config, error)
	reload <-chan os.Signal
}

// serve runs a broker until ctx is done or it cannot go on.
func serve(ctx context.Context, cfg settings, log *logs, out io.Writer) error {
	signal.Ignore(syscall.SIGPIPE)    // a reader of our output that goes away must not take the broker with it
	for i, dir := range cfg.LogDirs { // clients and messages are told where a dir is, wherever we were started
		if path, err := filepath.Abs(dir); err == nil {
			cfg.LogDirs[i] = path
		}
	}
	if err := portsFree(cfg.Listeners); err != nil {
		return err
	}
	if err := misplaced(cfg.LogDirs, "log.dirs"); err != nil {
		return err
	}
	if err := orphaned(cfg.LogDirs); err != nil {
		return err
	}
	if err := handedOver(cfg.LogDirs[0]); err != nil {
		return err
	}
	warnStranger(cfg.LogDirs, log.Logger)
	watched, err := listenNumbers(cfg.MetricsAddress)
	if err != nil {
		return err
	}
	kernel, err := ring.New(kernelOptions(cfg.Config, log.Logger))
	if err != nil {
		return err
	}
	r := &run{kernel: kernel, cfg: cfg.Config, read: cfg.again, log: log, out: out}
	pulse := newPulse(kernel.Loops())
	if r.keeper, err = systemd.Keep(systemd.Options{
		Alive:  func(limit time.Duration) bool { return r.alive(pulse, limit) },
		Failed: func(err error) { log.Warn("the service manager was not told", "error", err) },
	}); err != nil {
		return wrong("WATCHDOG_USEC: %w", err)
	}
	if watched != nil {
		go (&numbers{life: &r.life, log: log, kernel: kernel, pulse: pulse, most: cfg.MetricsPartitions}).serve(watched)
	}
	first := kernel.Loops()[0]
	defer context.AfterFunc(ctx, func() {
		first.Post(&ring.Message{Run: func(*ring.Message) { r.stop() }})
	})()
	go func() {
		for range cfg.reload {
			first.Post(&ring.Message{Run: func(*ring.Message) { r.reload() }})
		}
	}()
	if err := kernel.Run(func() { ring.Go(first, r.start) }); err != nil {
		return err
	}
	return r.err
}

// alive says whether every loop turns, and complains about those that do not.
func (r *run) alive(p pulse, limit time.Duration) bool {
	still := p.still(limit)
	if still == nil {
		return true
	}
	if state, _ := r.life.now(); state != isStopping { // at the very end they do not
		r.log.Error("loops do not turn", "loops", still, "limit", limit)
	}
	return false
}

// descriptorsFew is below what a broker with some hundred partitions and connections needs.
const descriptorsFew = 4096

// descriptors is how many this process may have open; the Go runtime has raised the soft limit to the hard one.
func descriptors(log *slog.Logger) int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	n := int(min(limit.Cur, 1<<30))
	if n < descriptorsFew {
		log.Warn("few file descriptors for connections and segments; raise LimitNOFILE (ulimit -n)", "limit", n)
	}
	return n
}

func (r *run) start(t *ring.Task) {
	b, err := broker.Start(t, broker.Options{Loops: r.kernel.Loops(), Config: r.cfg, Open: r.openStore, Log: r.log.Logger, Fatal: r.fatal,
		Descriptors: descriptors(r.log.Logger), Told: r.told, Settings: r.log.configure, Levels: r.log, GiveUp: func() bool { return r.asked }})
	if errors.Is(err, broker.ErrGivenUp) { // as somebody has asked
		r.log.Info("broker stopped before it served; the next start recovers what this one has not")
		r.kernel.Stop()
		return
	}
	if err != nil {
		r.err = &failure{startStatus(err), err}
		r.kernel.Stop()
		return
	}
	r.broker = b
	if r.asked {
		r.asked = false
		r.stop()
		return
	}
	r.bound()
	r.life.broker.Store(b)
	r.life.state.Store(int32(isServing))
	r.keeper.Serving("serves " + advertised(r.cfg))
	if !systemd.Asked() {
		r.greet()
	}
}

// told passes on what a start or a stop is at.
func (r *run) told(s broker.Stage) {
	r.life.stage.Store(&s)
	if s.Recovery != nil {
		r.life.recovery.Store(s.Recovery)
	}
	if state, _ := r.life.now(); state == isStopping {
		r.keeper.Stopping(stageText(s))
	} else {
		r.keeper.Starting(stageText(s))
	}
}

// stop drains the broker and ends the loops. A broker that loads its logs gives that up; else a start is waited for.
func (r *run) stop() {
	if r.asked {
		return
	}
	r.asked = true
	r.life.state.Store(int32(isStopping))
	if r.broker == nil {
		r.log.Info("broker stops while it starts")
		return
	}
	ring.Go(r.kernel.Loops()[0], func(t *ring.Task) {
		if err := r.broker.Stop(t); err != nil && r.err == nil {
			r.err = err
		}
		r.kernel.Stop()
	})
}

// reload reads the settings again and puts those in force that may change. Whatever is wrong with them, those in force stay.
func (r *run) reload() {
	if r.broker == nil || r.asked {
		return
	}
	read, err := r.read()
	if err == nil {
		err = r.broker.Reload(read)
	}
	if err != nil {
		r.log.Error("settings stay as they are", "error", err)
	}
	r.keeper.Reloaded()
}

func (r *run) fatal(err error) {
	if r.err == nil {
		r.err = err
	}
	r.stop()
}

// bound puts the ports that the kernel has chosen into what is shown.
func (r *run) bound() {
	for i, a := range r.cfg.Advertised {
		if a.Port == 0 {
			if bound, ok := r.broker.Listener(a.Name); ok {
				_, port, _ := net.SplitHostPort(bound)
				n, _ := strconv.ParseUint(port, 10, 16)
				r.cfg.Advertised[i].Port = int32(n)
			}
		}
	}
}

// greet tells a person what runs where. Nobody waits for one who does not read it.
func (r *run) greet() {
	node := r.broker.Node()
	text := fmt.Sprintf("kring broker %d of cluster %s serves %s\n", node.ID, node.ClusterID, advertised(r.cfg)) +
		fmt.Sprintf("data in %s; try: kcat -b %s -L; Ctrl-C stops\n", strings.Join(r.cfg.LogDirs, ", "), hostPort(r.cfg.Advertised[0]))
	go io.WriteString(r.out, text)
}

// openStore opens the embedded store.
func (r *run) openStore(t *ring.Task, dir string, clean bool) (broker.Store, error) {
	s, err := embedded.Open(t, dir, embedded.Options{Clean: clean, Log: r.log.Logger})
	if err != nil {
		return broker.Store{}, err
	}
	return broker.Store{Store: s, Close: s.Close, Trouble: s.SnapshotErr}, nil
}

// orphaned refuses log dirs that belong to a cluster whose store is not in the first: a new store would not know its topics. It is looked
// at before anything is opened, so that the dirs stay as they are.
func orphaned(dirs []string) error {
	entries, err := os.ReadDir(dirs[0])
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil // the broker will say what is wrong
	}
	if slices.ContainsFunc(entries, func(e os.DirEntry) bool { return embedded.IsTree(e.Name()) }) {
		return nil
	}
	for _, dir := range dirs {
		if id := clusterOf(filepath.Join(dir, "meta.properties")); id != "" {
			return &failure{exitData, fmt.Errorf("%s/meta.properties belongs to cluster %s, whose store, kring-store-*, is in no log dir: if "+
				"another log dir was the first, put that first in log.dirs; else kring store import brings that of a Kafka, stopped, from its "+
				"ZooKeeper", dir, id)}
		}
	}
	return nil
}

// clusterOf reads the cluster.id of a meta.properties; "" for none, or a file that the broker will complain about.
func clusterOf(name string) string {
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() || info.Size() > 1<<20 {
		return ""
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	properties, err := config.ParseProperties(text)
	if err != nil {
		return ""
	}
	for _, p := range properties {
		if p.Key == "cluster.id" {
			return p.Value
		}
	}
	return ""
}

// startStatus is the exit status of a broker that did not start.
func startStatus(err error) int {
	var path *os.PathError
	switch {
	case errors.As(err, &path) && path.Op == "lock":
		return exitLocked
	case errors.As(err, &path):
		return exitData
	case errors.Is(err, syscall.EADDRINUSE), errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EACCES), isLookup(err):
		return exitAddress
	}
	return exitData
}

func isLookup(err error) bool {
	var dns *net.DNSError
	var addr *net.AddrError
	return errors.As(err, &dns) || errors.As(err, &addr)
}

func hostPort(l config.Listener) string { return net.JoinHostPort(l.Host, strconv.Itoa(int(l.Port))) }

// reachable fills in the host clients are told where the settings leave it out: this machine's name, as Kafka does, if it leads
// to an address; else localhost.
func reachable(cfg *config.Config, log *slog.Logger) {
	name := ""
	for i := range cfg.Advertised {
		if cfg.Advertised[i].Host != "" {
			continue
		}
		if name == "" {
			name = ownName(log)
		}
		cfg.Advertised[i].Host = name
	}
}

// lookupPatience bounds what a name server that does not answer adds to the start.
const lookupPatience = 300 * time.Millisecond

func ownName(log *slog.Logger) string {
	name, err := os.Hostname()
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), lookupPatience)
		defer cancel()
		_, err = (&net.Resolver{PreferGo: true}).LookupHost(ctx, name)
	}
	if err != nil || name == "" {
		log.Warn("this machine's name leads to no address: clients are told localhost; set advertised.listeners", "name", name)
		return "localhost"
	}
	return name
}

package broker

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"kring/daemon/api"
	"kring/daemon/config"
	"kring/daemon/server"
	"kring/metadata"
	"kring/replication/controller"
	"kring/ring"
	"kring/segment"
)

// Store is the cluster's store, opened, and how to close it.
type Store struct {
	metadata.Store
	Close func(t *ring.Task) error
	// Trouble, if set, says what is wrong with it though it works on; nil for nothing.
	Trouble func() error
}

// Options make a broker.
type Options struct {
	// Loops are the loops it runs on; Start is called on the first.
	Loops  []ring.Loop
	Config *config.Config
	// Open opens the store; it is called once the log dirs are locked, with the first of them, and whether that was stopped cleanly.
	Open func(t *ring.Task, dir string, clean bool) (Store, error)
	Log  *slog.Logger
	// PartitionsMost is how many partitions one request may create; 0 is what KRaft's controllers allow.
	PartitionsMost int64
	// Descriptors is how many the process may have open; 0 if that is not known. They are divided between files and connections.
	Descriptors int
	// Fatal is called, once, when the broker cannot go on: stop the process. May be nil.
	Fatal func(error)
	// GiveUp, if set, is asked on loop 0 while logs are loaded whether the start is to be given up: it then ends with ErrGivenUp soon.
	GiveUp func() bool
	// Told, if set, is called on loop 0 as start and stop go on.
	Told func(Stage)
	// Levels is the level of Log, for clients to see and set; nil for none.
	Levels api.Levels
	// Settings, if set, is called on loop 0 when the broker's settings have changed.
	Settings func(*config.Config)
}

// Stage is what a start or a stop is at, and how far: Done of Total, where that can be said.
type Stage struct {
	Doing       string
	Done, Total int
	// Recovery, if it is not nil, says more: logs are being loaded, or have been just now. Nobody changes it any more.
	Recovery *Recovery
}

func (b *Broker) tell(doing string, done, total int) {
	if b.o.Told != nil {
		b.o.Told(Stage{Doing: doing, Done: done, Total: total})
	}
}

// partitionsMost is KRaft's MAX_PARTITIONS_PER_BATCH.
const partitionsMost = 10_000

// Broker is one running broker.
type Broker struct {
	o      Options
	log    *slog.Logger
	loop   ring.Loop
	node   *api.Node
	static *config.Config // as given, without dynamic settings
	store  Store
	ctl    *controller.Controller
	shards []*shard

	dirs    []*dir
	lost    []lost // those that could not be opened
	unmade  unmade
	placed  map[segment.Partition]*dir
	configs map[string]metadata.Config // what the logs of a topic were told last
	image   *metadata.Image
	marks   map[segment.Partition]segment.Offset // high watermarks of the last checkpoint

	listeners []*listener
	gate      *server.Gate
	turn      int // round robin of connections

	upkeep    upkeep
	cleaner   cleaner
	warned    map[string]bool // topic settings that do not act, named already
	trouble   error           // the store's, logged already
	recovered bool
	givenUp   bool
	stopping  bool
	fatal     bool
}

// dir is a log dir and how many partitions lie in it.
type dir struct {
	*segment.Dir
	count int
	// spoiled says that a log in it was not opened or not closed as it should: it must not be marked clean.
	spoiled bool
	// failed is why it is offline, nil if it is not; marked: the next start will know.
	failed error
	marked bool
	unsaid [kinds]bool // checkpoints that could not be written, as was logged
	lines  lines
}

// Start brings a broker up on loop 0 of o.Loops. When it fails, what was begun is undone, and the error says in one line why.
func Start(t *ring.Task, o Options) (*Broker, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	b := &Broker{o: o, log: o.Log, loop: t.Loop(), static: o.Config,
		placed: map[segment.Partition]*dir{}, configs: map[string]metadata.Config{}, marks: map[segment.Partition]segment.Offset{},
		warned: map[string]bool{}}
	if err := b.start(t); err != nil {
		b.undo(t)
		return nil, err
	}
	return b, nil
}

func (b *Broker) start(t *ring.Task) error {
	began := b.loop.Now()
	b.tell("opening the log dirs", 0, 0)
	if err := b.bind(); err != nil {
		return err
	}
	if err := b.openDirs(t); err != nil {
		return err
	}
	b.tell("opening the store", 0, 0)
	if err := b.openStore(t); err != nil {
		return err
	}
	ids, configs, err := b.ctl.Topics(t)
	if err != nil {
		return fmt.Errorf("reading the topics: %w", err)
	}
	b.makeShards(t)
	b.recover(t, ids, configs)
	if b.givenUp {
		return ErrGivenUp
	}
	if err := b.enough(); err != nil {
		return err
	}
	b.tell("registering the broker", 0, 0)
	if err := b.register(t); err != nil {
		return err
	}
	if err := b.enough(); err != nil {
		return err
	}
	b.accept()
	b.upkeep.begin(b)
	b.cleaner.begin(b)
	b.log.Info("broker serves", "broker.id", b.node.ID, "cluster.id", b.node.ClusterID, "loops", len(b.shards),
		"partitions", len(b.placed), "took", (b.loop.Now() - began).Round(time.Millisecond))
	return nil
}

// openStore opens the store, finds the ids of cluster and broker, and lays the dynamic settings over ours.
func (b *Broker) openStore(t *ring.Task) error {
	store, err := b.o.Open(t, b.dirs[0].Path(), b.dirs[0].Clean())
	if err != nil {
		return fmt.Errorf("opening the store: %w", err)
	}
	b.store = store
	b.node = &api.Node{Log: b.log, Levels: b.o.Levels, PartitionsMost: b.o.PartitionsMost}
	b.node.LogDirs = b.static.LogDirs
	b.showOffline()
	if b.node.PartitionsMost == 0 {
		b.node.PartitionsMost = partitionsMost
	}
	b.node.SetConfig(b.static)
	b.node.SetImage(metadata.NewImage())
	b.ctl = controller.New(controller.Options{
		Loop: b.loop, Store: store.Store, Log: b.log,
		ReservedBrokerMaxID: b.static.MaxReservedBrokerID, DeleteTopics: b.static.DeleteTopics,
		NumPartitions: b.static.NumPartitions, ReplicationFactor: b.static.ReplicationFactor,
		Configs:      api.Rules(b.node.Config),
		BecomeLeader: b.becomeLeader, StopReplicas: b.stopReplicas, OnImage: b.onImage, OnFenced: b.fail,
	})
	b.node.Controller = b.ctl
	known, err := b.holdsCluster(t)
	if err != nil {
		return err
	}
	if b.node.ClusterID, err = b.ctl.Prepare(t); err != nil {
		return fmt.Errorf("preparing the store: %w", err)
	}
	if err := b.identify(t, known); err != nil {
		return err
	}
	own, all, err := b.ctl.BrokerConfigs(t, b.node.ID)
	if err != nil {
		return fmt.Errorf("reading the broker's dynamic settings: %w", err)
	}
	b.dynamic(own, all)
	return nil
}

// register announces the broker, takes over what it leads, and publishes the first picture.
func (b *Broker) register(t *ring.Task) error {
	_, err := b.ctl.Register(t, controller.Registration{ID: b.node.ID, Endpoints: b.endpoints(), Rack: b.static.Rack})
	if err != nil {
		return fmt.Errorf("registering the broker: %w", err)
	}
	if err := b.ctl.Start(t); err != nil {
		return fmt.Errorf("starting the controller: %w", err)
	}
	b.tellOutside()
	b.recovered = true
	return nil
}

// Stop takes nothing new, answers what is under way, closes everything and leaves the log dirs marked clean.
func (b *Broker) Stop(t *ring.Task) error {
	if b.stopping {
		return errors.New("broker: stopping already")
	}
	b.stopping = true
	b.log.Info("broker stops")
	b.unbind()
	b.cleaner.end(t)
	b.upkeep.end(t, b)
	b.tell("answering what is under way", 0, 0)
	b.drain(t)
	b.ctl.Stop(t)
	b.closeLogs(t)
	err := b.closeDirs(t)
	b.log.Info("broker stopped")
	return err
}

// ErrGivenUp is what a start ends with that was given up.
var ErrGivenUp = errors.New("the start was given up")

// undo ends a start that failed: nothing is marked clean that was not. One that was given up leaves the log dirs as a crash would: what
// was opened is dropped, and checkpoints stand as they stood, since they tell of the other logs, too.
func (b *Broker) undo(t *ring.Task) {
	b.stopping = true
	b.unbind()
	if b.givenUp {
		b.each(t, func(s *shard, done func()) {
			for _, r := range s.replicas() {
				r.log.Abandon()
			}
			done()
		})
		for _, d := range b.dirs {
			d.spoiled = true
		}
		b.closeDirs(t)
		return
	}
	if b.ctl != nil && b.recovered {
		b.ctl.Stop(t)
	}
	if b.shards != nil { // else no log was opened, and the checkpoints stand as the last stop left them
		b.closeLogs(t)
	}
	for _, d := range b.dirs {
		d.spoiled = d.spoiled || !d.Clean()
	}
	b.closeDirs(t)
}

// fail is told that the broker cannot go on.
func (b *Broker) fail(err error) {
	if b.fatal {
		return
	}
	b.fatal = true
	b.log.Error("broker cannot go on", "error", err)
	if b.o.Fatal != nil {
		b.o.Fatal(err)
	}
}

// Node is what the loops share.
func (b *Broker) Node() *api.Node { return b.node }

// Listener is the address a listener is bound to, by name.
func (b *Broker) Listener(name string) (addr string, ok bool) {
	for _, l := range b.listeners {
		if l.Name == name {
			return l.bound.Addr().String(), true
		}
	}
	return "", false
}

package controller

import (
	"errors"
	"fmt"
	"log/slog"
	"sort"
	"strings"
	"testing"
	"time"

	"kring/metadata"
	"kring/metadata/embedded"
	"kring/ring"
	"kring/ring/simring"
)

// recorder is the store with a note of every change asked for that was applied, in order.
type recorder struct {
	*embedded.Store
	notes []string
}

func (r *recorder) Do(ops []metadata.Op, done func([]metadata.Result, error)) {
	text := make([]string, len(ops))
	for i, op := range ops {
		text[i] = op.Kind.String() + " " + op.Path
	}
	r.Store.Do(ops, func(results []metadata.Result, err error) {
		if err == nil {
			r.notes = append(r.notes, strings.Join(text, " + "))
		}
		done(results, err)
	})
}

// cluster is one broker on a simulated machine: a store, a controller, and a stand-in for logs that notes what it is told.
type cluster struct {
	t     testing.TB
	w     *simring.World
	m     *simring.Machine
	loop  ring.Loop
	store *recorder
	c     *Controller
	epoch metadata.BrokerEpoch
	image *metadata.Image

	told    []string         // calls of BecomeLeader and StopReplicas
	failing map[string]error // topics whose logs are offline
	hold    []func()         // if not nil, BecomeLeader waits until release
	configs []string
	fenced  error
	set     func(*Options)
	id      int32
}

func newCluster(t testing.TB, seed uint64) *cluster {
	w := simring.New(seed, simring.Options{})
	return &cluster{t: t, w: w, m: w.Machine("broker"), failing: map[string]error{}, id: 1}
}

func (x *cluster) options() Options {
	o := Options{
		Loop: x.loop, Store: x.store, Log: slog.New(slog.NewTextHandler(testWriter{x.t}, &slog.HandlerOptions{Level: slog.LevelError})),
		DeleteTopics: true, NumPartitions: 1, ReplicationFactor: 1,
		BecomeLeader: func(parts []LeaderState, done func([]error)) {
			errs := make([]error, len(parts))
			for i, p := range parts {
				x.told = append(x.told, fmt.Sprintf("lead %s-%d epoch %d.%d new %v %v", p.Topic, p.Partition,
					p.State.LeaderEpoch, p.State.PartitionEpoch, p.New, p.Config))
				errs[i] = x.failing[p.Topic]
			}
			if x.hold != nil {
				x.hold = append(x.hold, func() { done(errs) })
				return
			}
			done(errs)
		},
		StopReplicas: func(parts []StopReplica, done func([]error)) {
			errs := make([]error, len(parts))
			for i, p := range parts {
				x.told = append(x.told, fmt.Sprintf("stop %s-%d delete %v epoch %d", p.Topic, p.Partition, p.Delete, p.LeaderEpoch))
				if p.Delete {
					errs[i] = x.failing[p.Topic]
				}
			}
			done(errs)
		},
		OnImage: func(m *metadata.Image) { x.image = m },
		OnTopicConfig: func(topic string, c metadata.Config) {
			x.configs = append(x.configs, fmt.Sprint("topic ", topic, " ", c))
		},
		OnBrokerConfig: func(id int32, c metadata.Config) { x.configs = append(x.configs, fmt.Sprint("broker ", id, " ", c)) },
		OnFenced:       func(err error) { x.fenced = err },
	}
	if x.set != nil {
		x.set(&o)
	}
	return o
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(b []byte) (int, error) { w.t.Log(string(b)); return len(b), nil }

// start boots the broker and waits until it serves.
func (x *cluster) start() {
	x.t.Helper()
	if err := x.boot(); err != nil {
		x.t.Fatal(err)
	}
}

func (x *cluster) boot() (err error) {
	x.t.Helper()
	done := false
	x.told, x.configs = nil, nil
	x.loop = x.m.Loops(1)[0]
	x.m.Do(x.loop, func() {
		ring.Go(x.loop, func(task *ring.Task) {
			err = x.bring(task)
			done = true
		})
	})
	x.until("the broker's start", func() bool { return done })
	return err
}

func (x *cluster) bring(task *ring.Task) (err error) {
	if err = task.MakeDir("/data"); err != nil {
		return err
	}
	if err = task.SyncDir("/"); err != nil {
		return err
	}
	store, err := embedded.Open(task, "/data", embedded.Options{})
	if err != nil {
		return err
	}
	x.store = &recorder{Store: store}
	x.c = New(x.options())
	if _, err = x.c.Prepare(task); err != nil {
		return err
	}
	id, err := x.c.BrokerID(task, x.id)
	if err != nil {
		return err
	}
	x.epoch, err = x.c.Register(task, Registration{ID: id,
		Endpoints: []metadata.Endpoint{{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: "h", Port: 9092}}})
	if err != nil {
		return err
	}
	return x.c.Start(task)
}

func (x *cluster) until(what string, cond func() bool) {
	x.t.Helper()
	if err := x.w.RunUntil(what, 2*time.Minute, cond); err != nil {
		x.t.Fatal(err)
	}
}

// stop ends the broker in order.
func (x *cluster) stop() {
	x.t.Helper()
	x.task(func(task *ring.Task) {
		x.c.Stop(task)
		if err := x.store.Close(task); err != nil {
			x.t.Error(err)
		}
	})
	if err := x.m.Exit(); err != nil {
		x.t.Fatal(err)
	}
}

func (x *cluster) task(fn func(task *ring.Task)) {
	x.t.Helper()
	done := false
	x.m.Do(x.loop, func() { ring.Go(x.loop, func(task *ring.Task) { fn(task); done = true }) })
	x.until("a task", func() bool { return done })
}

func (x *cluster) do(fn func(done func())) {
	x.t.Helper()
	finished := false
	x.m.Do(x.loop, func() {
		inside := true
		fn(func() {
			if inside || finished {
				x.t.Error("answered inside the call, or twice")
			}
			finished = true
		})
		inside = false
	})
	x.until("an answer", func() bool { return finished })
}

var minute = Call{Timeout: time.Minute}

func (x *cluster) create(call Call, topics ...CreateTopic) (out []CreatedTopic) {
	x.t.Helper()
	x.do(func(done func()) {
		x.c.CreateTopics(topics, call, func(r []CreatedTopic) { out = r; done() })
	})
	return out
}

func (x *cluster) mustCreate(topics ...CreateTopic) []CreatedTopic {
	x.t.Helper()
	out := x.create(minute, topics...)
	for _, r := range out {
		if r.Err != nil {
			x.t.Fatalf("creating %s: %v", r.Name, r.Err)
		}
	}
	return out
}

func (x *cluster) delete(call Call, topics ...DeleteTopic) (out []DeletedTopic) {
	x.t.Helper()
	x.do(func(done func()) {
		x.c.DeleteTopics(topics, call, func(r []DeletedTopic) { out = r; done() })
	})
	return out
}

func (x *cluster) grow(call Call, topics ...CreatePartitions) (out []error) {
	x.t.Helper()
	x.do(func(done func()) { x.c.CreatePartitions(topics, call, func(r []error) { out = r; done() }) })
	return out
}

func (x *cluster) alter(validateOnly bool, alter ...AlterConfig) (out []error) {
	x.t.Helper()
	x.do(func(done func()) { x.c.AlterConfigs(alter, validateOnly, func(r []error) { out = r; done() }) })
	return out
}

// settle waits until nothing is left to do.
func (x *cluster) settle() {
	x.t.Helper()
	quiet := 0
	for quiet < 3 { // what ends one lane's work may begin another's a step later
		x.until("rest", func() bool {
			return !x.c.events.running && !x.c.sender.running && !x.c.config.running && !x.c.admin.running
		})
		x.w.RunFor(5 * time.Millisecond)
		quiet++
	}
	x.c.check()
}

// tree is the store's nodes but ZooKeeper's own, one line each: path, versions, data.
func (x *cluster) tree() []string {
	x.t.Helper()
	var lines []string
	x.task(func(task *ring.Task) {
		c := client{x.store}
		var walk func(path string)
		walk = func(path string) {
			data, st, err := c.get(task, path, false)
			if err != nil {
				x.t.Error(err)
				return
			}
			text := "null"
			if data != nil {
				text = string(data)
			}
			lines = append(lines, fmt.Sprintf("%s %d %d %s", path, st.Version, st.Cversion, text))
			names, _ := c.children(task, path, false)
			for _, n := range names {
				if n != "zookeeper" {
					walk(strings.TrimSuffix(path, "/") + "/" + n)
				}
			}
		}
		walk("/")
	})
	sort.Strings(lines)
	return lines
}

func (x *cluster) node(path string) string {
	x.t.Helper()
	for _, line := range x.tree() {
		if rest, ok := strings.CutPrefix(line, path+" "); ok {
			return rest
		}
	}
	return ""
}

func kindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return 255
}

func text(s string) *string { return &s }

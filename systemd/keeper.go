package systemd

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// phase is where the service is in its life.
type phase uint8

const (
	starting phase = iota
	serving
	stopping
)

const (
	// extendEvery is how often more time is asked for, extendBy how much. The first must come within TimeoutStartSec.
	extendEvery = 5 * time.Second
	extendBy    = 60 * time.Second
	// progressMost is how long a start or a stop may go without a step and still get more time.
	progressMost = 10 * time.Minute
	// statusEvery bounds how often a status is sent.
	statusEvery = time.Second
	// checksPerWatchdog is how often the loops are looked at in the time after which the manager takes us for dead.
	checksPerWatchdog = 4
)

// Options make a Keeper.
type Options struct {
	// Alive says whether the service works, after at most limit.
	Alive func(limit time.Duration) bool
	// Failed, if set, is told of a message that could not be sent.
	Failed func(error)
}

// Keeper keeps the manager informed until the process ends. Its methods may be called by any goroutine and never wait.
type Keeper struct {
	o        Options
	watchdog time.Duration // 0: the manager does not watch
	send     func(state string) error
	every    struct{ extend, status time.Duration } // shorter in tests
	patience time.Duration

	mu     sync.Mutex
	phase  phase
	status string
	moved  time.Time // last step of a start or a stop
	reload bool      // a reload is to be told

	changed chan struct{}
	told    struct { // the goroutine's own
		phase  phase
		status string
		at     time.Time
	}
}

// Asked says whether a manager wants to be informed.
func Asked() bool { return os.Getenv("NOTIFY_SOCKET") != "" }

// Keep begins to inform the manager; nil if none asks, and then all methods do nothing.
func Keep(o Options) (*Keeper, error) {
	if !Asked() {
		return nil, nil
	}
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		return nil, err
	}
	k := newKeeper(o, watchdog, func(state string) error {
		_, err := daemon.SdNotify(false, state)
		return err
	})
	go k.run()
	return k, nil
}

func newKeeper(o Options, watchdog time.Duration, send func(string) error) *Keeper {
	k := &Keeper{o: o, watchdog: watchdog, send: send, patience: progressMost, moved: time.Now(), changed: make(chan struct{}, 1)}
	k.every.extend, k.every.status = extendEvery, statusEvery
	return k
}

// Starting tells a step of the start, Serving that it is over and what is served, Stopping a step of the stop.
func (k *Keeper) Starting(status string) { k.enter(starting, status) }

// Serving tells that the start is over.
func (k *Keeper) Serving(status string) { k.enter(serving, status) }

// Stopping tells a step of the stop.
func (k *Keeper) Stopping(status string) { k.enter(stopping, status) }

// Reloaded tells that settings were read again.
func (k *Keeper) Reloaded() {
	if k == nil {
		return
	}
	k.mu.Lock()
	k.reload = true
	k.mu.Unlock()
	k.wake()
}

func (k *Keeper) enter(p phase, status string) {
	if k == nil {
		return
	}
	k.mu.Lock()
	if p >= k.phase { // a step of a start that ends in a stop comes too late
		k.phase, k.status, k.moved = p, status, time.Now()
	}
	k.mu.Unlock()
	k.wake()
}

func (k *Keeper) wake() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// run sends what has changed at once, a mere status now and then, and what is due by the clock.
func (k *Keeper) run() {
	every := k.every.extend
	if k.watchdog > 0 {
		every = min(every, k.watchdog/checksPerWatchdog)
	}
	clock := time.NewTicker(every)
	defer clock.Stop()
	for {
		select {
		case <-k.changed:
			k.tell()
		case <-clock.C:
			k.tell()
			k.beat(every)
		}
	}
}

// tell sends the phase and the status where they have changed.
func (k *Keeper) tell() {
	k.mu.Lock()
	phase, status, reload := k.phase, k.status, k.reload
	k.reload = false
	k.mu.Unlock()
	if reload && phase == serving {
		k.say("RELOADING=1\nSTATUS=reading the settings again")
		k.told.phase = starting // READY=1 says that the reload is over
	}
	t := &k.told
	switch {
	case phase != t.phase && phase == serving:
		k.say("READY=1\nSTATUS=" + status)
	case phase != t.phase:
		k.say("STOPPING=1\nSTATUS=" + status)
	case status == t.status || time.Since(t.at) < k.every.status:
		return // the clock comes again
	default:
		k.say("STATUS=" + status)
	}
	t.phase, t.status, t.at = phase, status, time.Now()
}

// beat tells that the service is alive, or needs more time, if that is so.
func (k *Keeper) beat(limit time.Duration) {
	k.mu.Lock()
	phase, moved := k.phase, k.moved
	k.mu.Unlock()
	switch {
	case phase != serving && time.Since(moved) > k.patience:
	case !k.o.Alive(limit):
	case phase != serving:
		k.say(fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", extendBy.Microseconds()))
	case k.watchdog > 0:
		k.say("WATCHDOG=1")
	}
}

func (k *Keeper) say(state string) {
	if err := k.send(state); err != nil && k.o.Failed != nil {
		k.o.Failed(err)
	}
}

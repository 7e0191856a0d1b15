package sim

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"kring/daemon/broker"
	"kring/daemon/config"
	"kring/metadata/embedded"
	"kring/ring"
	"kring/ring/simring"
)

const (
	port    = "9092"
	logDir  = "/data" // the store lies in it
	moreDir = "/more"
	bootMax = 10 * time.Minute
)

// host is a simulated machine and the broker on it.
type host struct {
	w     *simring.World
	m     *simring.Machine
	count int // loops
	conf  *config.Config
	log   *slog.Logger

	loops []ring.Loop
	b     *broker.Broker
	life  int   // processes so far
	fatal error // the broker asked to be ended
}

func newHost(w *simring.World, loops int, log *slog.Logger) (*host, error) {
	c, _, err := config.Load("", []string{
		"log.dirs=" + logDir + "," + moreDir, "listeners=PLAINTEXT://10.0.0.1:" + port, "log.segment.delete.delay.ms=1000",
		"log.retention.check.interval.ms=1000", "log.flush.offset.checkpoint.interval.ms=200",
	})
	if err != nil {
		return nil, err
	}
	return &host{w: w, m: w.Machine("k"), count: loops, conf: c, log: log}, nil
}

func (h *host) openStore(t *ring.Task, dir string, clean bool) (broker.Store, error) {
	s, err := embedded.Open(t, dir, embedded.Options{Clean: clean, Log: h.log})
	if err != nil {
		return broker.Store{}, err
	}
	return broker.Store{Store: s, Close: s.Close}, nil
}

// boot starts a process; done is called when the broker serves or has refused.
func (h *host) boot(done func(error)) {
	h.life++
	life := h.life
	h.b, h.fatal = nil, nil
	for _, name := range []string{"recovery-point-offset-checkpoint", "log-start-offset-checkpoint", ".kafka_cleanshutdown"} {
		if b, err := h.m.ReadFile(logDir + "/" + name); err == nil {
			h.w.Say("found", "%s: %q", name, b)
		}
	}
	h.loops = h.m.Start(h.count, func(loops []ring.Loop) {
		ring.Go(loops[0], func(t *ring.Task) {
			b, err := broker.Start(t, broker.Options{
				Loops: loops, Config: h.conf, Open: h.openStore, Log: h.log,
				Fatal: func(err error) {
					if h.life == life {
						h.fatal = err
					}
				},
			})
			if err == nil {
				h.b = b
			}
			done(err)
		})
	})
}

// up boots and waits; a refusal is tried again on a new process, a few times.
func (h *host) up(attempts int) error {
	var last error
	for range attempts {
		ended := false
		h.boot(func(err error) { ended, last = true, err })
		if err := h.w.RunUntil("the broker to start", bootMax, func() bool { return ended }); err != nil {
			return err
		}
		if last == nil {
			h.w.Say("nemesis", "broker serves")
			return nil
		}
		h.w.Say("nemesis", "broker refused to start: %v", last)
		h.kill()
		h.w.RunFor(50 * time.Millisecond)
	}
	return fmt.Errorf("broker does not start: %w", last)
}

// dirOf is the log dir a partition lies in.
func (h *host) dirOf(partition string) string {
	for _, name := range h.m.Files(moreDir) {
		if strings.HasPrefix(name, moreDir+"/"+partition+"/") {
			return moreDir
		}
	}
	return logDir
}

func (h *host) kill() {
	h.b = nil
	h.m.Kill()
}

func (h *host) crash() {
	h.b = nil
	h.m.Crash()
}

// stop stops the broker in order; what it still holds is an error.
func (h *host) stop() error {
	if h.b == nil {
		return errors.New("no broker to stop")
	}
	ended, b := false, h.b
	var failed error
	h.m.Do(h.loops[0], func() {
		ring.Go(h.loops[0], func(t *ring.Task) {
			failed = b.Stop(t)
			ended = true
		})
	})
	if err := h.w.RunUntil("the broker to stop", bootMax, func() bool { return ended }); err != nil {
		return err
	}
	h.w.RunFor(1500 * time.Millisecond) // delayed deletions
	h.b = nil
	return errors.Join(failed, h.m.Exit())
}

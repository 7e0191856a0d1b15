package sim

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	"kring/wire"
)

// harm is one fault: what it does, for how long it lasts, and what it takes to get over it.
type harm struct {
	name string
	do   func(s *Story)
	// last is how long the fault is left alone, at most.
	last time.Duration
	// after heals: reboot after a power loss, restart of the process, or nothing.
	after recovery
}

type recovery int

const (
	goOn    recovery = iota // the broker must recover by itself
	restart                 // a log dir may be offline until the process is started anew
	reboot                  // so with the machine
)

var harms = []harm{
	{"nothing", func(*Story) {}, 100 * time.Millisecond, goOn},
	{"kill", func(*Story) {}, 0, restart},
	{"crash", func(*Story) {}, 0, reboot},
	{"stop", func(s *Story) {}, 0, goOn}, // see phase
	{"lost links", func(s *Story) { s.h.m.Faults.Drop = 0.01 }, 200 * time.Millisecond, goOn},
	{"slow disk", func(s *Story) { s.h.m.Faults.Slow = 0.1 }, 200 * time.Millisecond, goOn},
	{"full disk", fullDisk, 200 * time.Millisecond, goOn},
	{"failed write", func(s *Story) { s.failLog("write") }, 150 * time.Millisecond, restart},
	{"failed sync", func(s *Story) { s.failLog("sync") }, 150 * time.Millisecond, restart},
	{"lost log dir", loseDir, 150 * time.Millisecond, restart},
	{"failed reads", failedReads, 100 * time.Millisecond, goOn},
	{"failed open", func(s *Story) { s.h.m.FailNext("open", ".log", s.w.FaultRand().IntN(3), 1, syscall.EIO) },
		150 * time.Millisecond, restart},
	{"failed store", failedStore, 100 * time.Millisecond, restart},
	{"clock", skewClock, 100 * time.Millisecond, goOn},
	{"vandals", vandals, 100 * time.Millisecond, goOn},
	{"deletion", (*Story).deleteRecords, 50 * time.Millisecond, goOn},
	{"topics", (*Story).changeTopics, 50 * time.Millisecond, goOn},
}

// phase lets the broker work, does one harm, lets it last, and heals it.
func (s *Story) phase() error {
	r := s.w.FaultRand()
	s.w.RunFor(time.Duration(r.IntN(150)) * time.Millisecond)
	h := harms[r.IntN(len(harms))]
	s.faults = append(s.faults, h.name)
	s.w.Say("nemesis", "%s", h.name)
	if h.name == "stop" {
		s.open = false
		if err := s.h.stop(); err != nil {
			return fmt.Errorf("a stop in order: %w", err)
		}
		return s.restart(false)
	}
	h.do(s)
	if h.last > 0 {
		s.w.RunFor(time.Duration(r.Int64N(int64(h.last))))
	}
	s.heal()
	if strings.HasPrefix(h.name, "failed ") && h.name != "failed store" && h.name != "failed reads" || h.name == "lost log dir" {
		if err := s.others(); err != nil {
			return err
		}
	}
	if s.h.fatal != nil {
		s.w.RunFor(time.Second) // as in others
	}
	powerLoss := false
	switch {
	case h.after == reboot, h.name == "lost log dir" && s.h.fatal != nil, // no word could be left in it
		h.after == restart && h.name != "kill" && r.IntN(3) == 0:
		s.open, powerLoss = false, true
		s.h.crash()
	case h.after == restart || s.h.fatal != nil:
		s.open = false
		s.h.kill()
	default:
		return s.err
	}
	for _, p := range s.partitions {
		p.start = 0
	}
	s.w.RunFor(time.Duration(r.IntN(50)) * time.Millisecond)
	// Now and then the machine fails again while it starts.
	for r.IntN(4) == 0 {
		s.h.boot(func(error) {})
		s.w.RunFor(time.Duration(r.IntN(10_000)) * time.Microsecond)
		if r.IntN(2) == 0 {
			powerLoss = true
			s.h.crash()
		} else {
			s.h.kill()
		}
		s.w.Say("nemesis", "and again")
	}
	return s.restart(powerLoss)
}

// others checks that a failure in one log dir has left the other alone.
func (s *Story) others() error {
	var offline []string
	for _, p := range s.partitions {
		_, code, err := s.listOffset(p, -1)
		if s.h.fatal != nil {
			return nil // the log dir of the store: the broker has asked to be ended
		}
		if err != nil {
			return err
		}
		if code != wire.None {
			s.w.Say("auditor", "%s in %s answers %v", p.name(), s.h.dirOf(p.name()), code)
			offline = append(offline, s.h.dirOf(p.name()))
		}
	}
	for _, dir := range offline {
		if dir != offline[0] {
			return fmt.Errorf("one log dir failed, and partitions in %s and %s are offline", offline[0], dir)
		}
	}
	if len(offline) > 0 {
		s.w.RunFor(time.Second) // the next start is told; one that is killed before that would have to be lucky
	}
	return nil
}

// loseDir lets everything in one log dir fail.
func loseDir(s *Story) {
	f := &s.h.m.Faults
	f.Write, f.Sync, f.Read, f.Open, f.Names = 1, 1, 1, 1, 1
	dir := [...]string{moreDir, moreDir, moreDir, logDir}[s.w.FaultRand().IntN(4)] + "/"
	f.Only = func(name string) bool { return strings.HasPrefix(name, dir) }
}

// failLog fails one operation on one partition's log.
func (s *Story) failLog(what string) {
	r := s.w.FaultRand()
	p := s.partitions[r.IntN(len(s.partitions))]
	s.h.m.FailNext(what, "/"+p.name()+"/", r.IntN(10), 1, syscall.EIO)
}

func fullDisk(s *Story) {
	m := s.h.m
	m.SetCapacity(1 << 40)
	used := int64(1<<40) - m.FreeSpace()
	m.SetCapacity(used + int64(s.w.FaultRand().IntN(60))<<10)
}

func failedReads(s *Story) {
	s.h.m.Faults.Read = 0.2
	s.h.m.Faults.Only = func(name string) bool { return len(name) > 4 && name[len(name)-4:] == ".log" }
}

func failedStore(s *Story) {
	what := [...]string{"write", "sync"}[s.w.FaultRand().IntN(2)]
	s.h.m.FailNext(what, "kring-store", 0, 1, syscall.EIO)
	s.side++
	s.tryCreate(fmt.Sprint("side-", s.side))
}

func skewClock(s *Story) {
	hours := s.w.FaultRand().IntN(49) - 24
	s.h.m.SkewClock(time.Duration(hours) * time.Hour)
}

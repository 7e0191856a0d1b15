package main

import (
	"fmt"
	"sync/atomic"

	"kring/daemon/broker"
)

// state is where the broker is in its life.
type state int32

const (
	isStarting state = iota
	isServing
	isStopping
)

// String is the state as health and numbers name it.
func (s state) String() string { return [...]string{"starting", "serving", "stopping"}[s] }

// life is what those who watch may know of the broker: loop 0 writes it, any goroutine reads.
type life struct {
	state  atomic.Int32
	stage  atomic.Pointer[broker.Stage]
	broker atomic.Pointer[broker.Broker] // from when it serves
	// recovery is the loading of logs, while it goes on and afterwards.
	recovery atomic.Pointer[broker.Recovery]
}

func (l *life) now() (s state, doing string) {
	if stage := l.stage.Load(); stage != nil {
		doing = stageText(*stage)
	}
	return state(l.state.Load()), doing
}

// stageText is a stage in words.
func stageText(s broker.Stage) string {
	if s.Total == 0 {
		return s.Doing
	}
	text := fmt.Sprintf("%s: %d of %d", s.Doing, s.Done, s.Total)
	if r := s.Recovery; r != nil && r.Bytes > 0 {
		text += fmt.Sprintf(", %.1f GB checked in %d s", float64(r.Bytes)/1e9, int(r.Took.Seconds()))
	}
	return text
}

package controller

import (
	"time"

	"kring/metadata"
	"kring/ring"
)

// waits are requests that wait for the picture to show something of their topics, or for their time-out.
type waits struct {
	loop    ring.Loop
	byTopic map[string][]*wait
	order   []*wait // as they came
}

// wait is one request; ready is asked for each topic.
type wait struct {
	left    map[string]error // the topics that are not ready, and why one of them will not be, if that is known
	open    int              // how many of them may still be
	leaders bool             // it is for leaders
	ready   func(m *metadata.Image, topic string) bool
	done    func(missing map[string]error, failed error)
	timer   ring.Timer
	over    bool
}

// until calls done once every topic is ready in the picture, or known not to be going to be, at the latest after timeout: with those
// that are not. It is not called inside until.
func (w *waits) until(m *metadata.Image, topics []string, timeout time.Duration, ready func(*metadata.Image, string) bool,
	done func(missing map[string]error, failed error)) *wait {
	x := &wait{left: map[string]error{}, ready: ready, done: done}
	if w.byTopic == nil {
		w.byTopic = map[string][]*wait{}
	}
	for _, topic := range topics {
		if _, twice := x.left[topic]; !twice && !ready(m, topic) {
			x.left[topic] = nil
			x.open++
			w.byTopic[topic] = append(w.byTopic[topic], x)
		}
	}
	if x.open == 0 {
		timeout = 0
	}
	w.order = append(w.order, x)
	x.timer.Fire = func(*ring.Timer) { w.end(x, nil) }
	w.loop.After(max(timeout, 0), &x.timer)
	return x
}

// look lets those go on who waited for what the picture now shows of these topics.
func (w *waits) look(m *metadata.Image, topics []string) {
	for _, topic := range topics {
		for _, x := range append([]*wait(nil), w.byTopic[topic]...) {
			if x.ready(m, topic) {
				delete(x.left, topic)
				w.settled(topic, x)
			}
		}
	}
}

// refuse lets those go on who wait for leaders of a topic of which one cannot lead.
func (w *waits) refuse(topic string, why error) {
	for _, x := range append([]*wait(nil), w.byTopic[topic]...) {
		if x.leaders {
			x.left[topic] = why
			w.settled(topic, x)
		}
	}
}

func (w *waits) settled(topic string, x *wait) {
	w.forget(topic, x)
	if x.open--; x.open == 0 {
		w.end(x, nil)
	}
}

// fail ends all waits.
func (w *waits) fail(err error) {
	for _, x := range append([]*wait(nil), w.order...) {
		w.end(x, err)
	}
}

func (w *waits) end(x *wait, failed error) {
	if x.over {
		return
	}
	x.over = true
	w.loop.Cancel(&x.timer)
	for topic := range x.left {
		w.forget(topic, x)
	}
	for i := range w.order {
		if w.order[i] == x {
			w.order = append(w.order[:i], w.order[i+1:]...)
			break
		}
	}
	x.done(x.left, failed)
}

func (w *waits) forget(topic string, x *wait) {
	list := w.byTopic[topic]
	for i := range list {
		if list[i] == x {
			list = append(list[:i], list[i+1:]...)
			break
		}
	}
	if len(list) == 0 {
		delete(w.byTopic, topic)
		return
	}
	w.byTopic[topic] = list
}

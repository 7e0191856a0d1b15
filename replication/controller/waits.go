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
	left  map[string]bool
	ready func(m *metadata.Image, topic string) bool
	done  func(missing map[string]bool, failed error)
	timer ring.Timer
	over  bool
}

// until calls done once every topic is ready in the picture, at the latest after timeout: with those that are not. It is not
// called inside until.
func (w *waits) until(m *metadata.Image, topics []string, timeout time.Duration, ready func(*metadata.Image, string) bool,
	done func(missing map[string]bool, failed error)) {
	x := &wait{left: map[string]bool{}, ready: ready, done: done}
	for _, topic := range topics {
		if !ready(m, topic) {
			x.left[topic] = true
		}
	}
	if len(x.left) == 0 {
		timeout = 0
	}
	if w.byTopic == nil {
		w.byTopic = map[string][]*wait{}
	}
	for _, topic := range topics {
		if x.left[topic] {
			w.byTopic[topic] = append(w.byTopic[topic], x)
		}
	}
	w.order = append(w.order, x)
	x.timer.Fire = func(*ring.Timer) { w.end(x, nil) }
	w.loop.After(max(timeout, 0), &x.timer)
}

// look lets those go on who waited for what the picture now shows of these topics.
func (w *waits) look(m *metadata.Image, topics []string) {
	for _, topic := range topics {
		for _, x := range append([]*wait(nil), w.byTopic[topic]...) {
			if x.ready(m, topic) {
				delete(x.left, topic)
				w.forget(topic, x)
				if len(x.left) == 0 {
					w.end(x, nil)
				}
			}
		}
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

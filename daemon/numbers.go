package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"kring/daemon/api"
	"kring/daemon/broker"
	"kring/ring"
)

// The limits of the HTTP port: it is for a few programs that watch, and must not be a way to fill memory.
const (
	watchersMost    = 16
	watcherHeader   = 8 << 10
	watcherPatience = 10 * time.Second // to send a request, and to read an answer
	// turnLimit is how long a loop may take to turn before it is said to be stuck.
	turnLimit = time.Second
)

// numbers serves what the broker counts, and whether it is well, over HTTP. Loops are asked by a message each and never wait.
type numbers struct {
	life   *life
	log    *logs
	kernel *ring.Kernel
	pulse  pulse
	most   int

	mu    sync.Mutex // one scrape at a time
	loops []*loopCopy
	size  int // of the last answer
}

// loopCopy holds the last figures of a loop that came whole. A loop that is stuck keeps the ones under way for itself.
type loopCopy struct {
	good, next *broker.Figures
	under      chan struct{} // closed when next is whole; nil if it was not asked for
	late       bool
}

// listenNumbers binds the address of the numbers, so that one in use is told before anything is touched.
func listenNumbers(address string) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err
		}
		return nil, &failure{exitAddress, fmt.Errorf("kring.metrics.address %s: %w; stop what listens there or set another", address, err)}
	}
	return &fewConns{Listener: l, free: make(chan struct{}, watchersMost)}, nil
}

// serve answers until the process ends.
func (n *numbers) serve(l net.Listener) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", n.metrics)
	mux.HandleFunc("GET /health", n.health)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "kring: /metrics has the numbers, /health says whether it serves\n")
	})
	s := &http.Server{Handler: mux, ReadTimeout: watcherPatience, WriteTimeout: 3 * watcherPatience, MaxHeaderBytes: watcherHeader,
		ErrorLog: slog.NewLogLogger(n.log.Handler(), slog.LevelDebug)}
	s.SetKeepAlivesEnabled(false) // watchers that stay would keep the next one out
	n.log.Error("numbers are not served any more", "error", s.Serve(l))
}

// health is 200 while the broker serves and every loop turns. Log dirs that are offline and partitions without room are told of; the
// rest serves, and a new start would not help.
func (n *numbers) health(w http.ResponseWriter, _ *http.Request) {
	state, doing := n.life.now()
	if state == isServing {
		if still := n.pulse.still(turnLimit); still != nil {
			http.Error(w, fmt.Sprintf("loops that do not turn: %v", still), http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, "serving\n")
		if b := n.life.broker.Load(); b != nil {
			degraded(w, b.Node())
		}
		return
	}
	http.Error(w, strings.TrimSuffix(state.String()+": "+doing, ": "), http.StatusServiceUnavailable)
}

// degraded says what of a broker that serves is not served.
func degraded(w io.Writer, node *api.Node) {
	for _, dir := range node.Offline() {
		fmt.Fprintf(w, "log dir offline: %s\n", dir)
	}
	if n := node.NoRoom(); n != nil {
		fmt.Fprintf(w, "degraded: %s offline for want of room in %s: %s\n", count(int64(n.Partitions), "partition"),
			strings.Join(n.Dirs, ", "), n.Causes[0])
	}
	if failed := node.GroupsFailed(); failed > 0 {
		fmt.Fprintf(w, "groups not served, of partitions of __consumer_offsets: %d\n", failed)
	}
}

// metrics is everything in Prometheus's text format. The answer is made whole before it is sent, so that a slow reader holds up
// nobody else.
func (n *numbers) metrics(w http.ResponseWriter, r *http.Request) {
	body := n.scrape()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	w.Write(body)
}

func (n *numbers) scrape() []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	var text bytes.Buffer
	text.Grow(n.size + n.size/8)
	p := &page{out: &text, n: n}
	if b := n.life.broker.Load(); b != nil {
		p.loops = n.gather(b)
	}
	p.write()
	n.size = text.Len()
	return text.Bytes()
}

// gather asks every loop for its figures and waits a little. Of one that does not answer the last ones count, so that no counter
// goes back.
func (n *numbers) gather(b *broker.Broker) []*loopCopy {
	if n.loops == nil {
		for range n.kernel.Loops() {
			n.loops = append(n.loops, &loopCopy{good: &broker.Figures{}, next: &broker.Figures{}})
		}
	}
	for i, c := range n.loops {
		if c.under == nil {
			under := make(chan struct{})
			c.under = under
			b.Figures(i, n.most, c.next, func() { close(under) })
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), turnLimit)
	defer cancel()
	for _, c := range n.loops {
		select {
		case <-c.under:
		case <-ctx.Done():
		}
		select {
		case <-c.under:
			c.good, c.next, c.under, c.late = c.next, c.good, nil, false
		default:
			c.late = true
		}
	}
	return n.loops
}

// fewConns closes connections at once that would be one too many.
type fewConns struct {
	net.Listener
	free chan struct{}
}

// Accept takes the next connection there is room for.
func (l *fewConns) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.free <- struct{}{}:
			return &fewConn{Conn: c, free: l.free}, nil
		default:
			c.Close()
		}
	}
}

type fewConn struct {
	net.Conn
	free chan struct{}
	once sync.Once
}

// Close makes room for another.
func (c *fewConn) Close() error {
	c.once.Do(func() { <-c.free })
	return c.Conn.Close()
}

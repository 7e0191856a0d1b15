package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	wait       = 3 * time.Minute // a busy Kafka needs more than one for its first group
	partitions = 4
)

// unsupported is what the client itself cannot do; the reason is part of the line.
type unsupported string

func (u unsupported) Error() string { return string(u) }

// step runs one and prints its line, which says nothing that differs from run to run; the first wrong thing ends the program.
func step(name string, body func() (any, error)) {
	began := time.Now()
	detail, err := body()
	var ok any = true
	var cannot unsupported
	switch {
	case errors.As(err, &cannot):
		ok, detail = "unsupported", string(cannot)
	case err != nil:
		ok, detail = false, err.Error()
	}
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	_ = e.Encode(struct {
		Step   string `json:"step"`
		OK     any    `json:"ok"`
		Detail any    `json:"detail"`
	}{name, ok, detail})
	os.Stdout.Write(line.Bytes())
	fmt.Fprintf(os.Stderr, "%s: %d ms\n", name, time.Since(began).Milliseconds())
	if ok == false {
		os.Exit(1)
	}
}

func same(what string, got, want any) error {
	g, w := fmt.Sprintf("%+q", got), fmt.Sprintf("%+q", want)
	if g != w {
		return fmt.Errorf("%s: %v, want %v", what, got, want)
	}
	return nil
}

// until asks for a fact until it holds.
func until(what string, fact func() (bool, error)) error {
	for end := time.Now().Add(wait); ; time.Sleep(5 * time.Millisecond) {
		ok, err := fact()
		if ok || err != nil {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("waited %v for: %s", wait, what)
		}
	}
}

// value compresses, so that a batch comes out as the codec's.
func value(codec, acks string, i int) []byte {
	return fmt.Appendf(nil, "%s/%s/%d/%s", codec, acks, i, strings.Repeat("compressible ", 40))
}

func binary() []byte {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

// reading checks the records of the produce steps: offsets without a gap, each value once.
type reading struct {
	next map[int32]int64
	seen map[string]bool
}

func (r *reading) record(partition int32, offset int64, key, val []byte) error {
	if r.next == nil {
		r.next, r.seen = map[int32]int64{}, map[string]bool{}
	}
	if err := same(fmt.Sprint("offset in ", partition), offset, r.next[partition]); err != nil {
		return err
	}
	r.next[partition]++
	part := strings.Split(string(val), "/")
	if len(part) != 4 {
		return fmt.Errorf("not a value of ours: %q", val)
	}
	i, err := strconv.Atoi(part[2])
	switch {
	case err != nil || !bytes.Equal(val, value(part[0], part[1], i)) || string(key) != "k"+part[2]:
		return fmt.Errorf("not as it was sent: %q, key %q", val, key)
	case r.seen[string(val)]:
		return fmt.Errorf("came twice: %.40q", val)
	}
	r.seen[string(val)] = true
	return nil
}

// ledger is what the members of one group share: who owns what, who read what.
type ledger struct {
	mu     sync.Mutex
	owners map[int32]string
	reads  map[string]int
	wrong  error
}

func newLedger() *ledger { return &ledger{owners: map[int32]string{}, reads: map[string]int{}} }

func (l *ledger) assigned(member string, partitions []int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range partitions {
		if o, owned := l.owners[p]; owned && o != member && l.wrong == nil {
			l.wrong = fmt.Errorf("partition %d went to %s while %s owned it", p, member, o)
		}
		l.owners[p] = member
	}
}

func (l *ledger) revoked(member string, partitions []int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range partitions {
		if l.owners[p] == member {
			delete(l.owners, p)
		}
	}
}

func (l *ledger) read(member string, partition int32, val []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owners[partition] != member && l.wrong == nil {
		l.wrong = fmt.Errorf("%s read partition %d, which it does not own", member, partition)
	}
	l.reads[string(val)]++
}

// count is how many different records were read.
func (l *ledger) count() (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.reads), l.wrong
}

func (l *ledger) owned(member string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.owners {
		if o == member {
			n++
		}
	}
	return n
}

// missing is how many of the sent records nobody read, and how many were read twice.
func (l *ledger) missing(sent int) (missing, twice int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range sent {
		switch n := l.reads[fmt.Sprint("record ", i)]; {
		case n == 0:
			missing++
		case n > 1:
			twice++
		}
	}
	return missing, twice
}

// load sends numbered records one by one until told that it is enough.
type load struct {
	sent int
	stop chan struct{}
	done chan error
}

func begin(send func(partition int32, val []byte) error) *load {
	l := &load{stop: make(chan struct{}), done: make(chan error, 1)}
	go func() {
		for ; ; l.sent++ {
			select {
			case <-l.stop:
				l.done <- nil
				return
			case <-time.After(time.Millisecond):
			}
			if err := send(int32(l.sent%partitions), fmt.Append(nil, "record ", l.sent)); err != nil {
				l.done <- fmt.Errorf("load: %w", err)
				return
			}
		}
	}()
	return l
}

func (l *load) end() (int, error) {
	close(l.stop)
	err := <-l.done
	return l.sent, err
}

// member of a group under test.
type member interface {
	// end leaves the group and returns what went wrong.
	end() error
	// failed is what went wrong so far.
	failed() error
}

// ofTwo: two members while records keep coming: the second joins, then the first leaves. between is called while both are members.
func ofTwo(join func(name string, l *ledger) (member, error), send func(int32, []byte) error, between func() error) (sent int, l *ledger, err error) {
	l = newLedger()
	flow := begin(send)
	fact := func(f func(read int) bool) func() (bool, error) {
		return func() (bool, error) {
			n, err := l.count()
			return f(n), err
		}
	}
	more := func(n int) func() (bool, error) {
		before, _ := l.count()
		return fact(func(read int) bool { return read > before+n })
	}
	a, err := join("A", l)
	if err != nil {
		return 0, l, err
	}
	var b member
	for _, do := range []func() error{
		func() error {
			return until("A owns all", fact(func(n int) bool { return l.owned("A") == partitions && n > 100 }))
		},
		func() error { b, err = join("B", l); return err },
		func() error {
			return until("A and B own two each", fact(func(int) bool { return l.owned("A") == 2 && l.owned("B") == 2 }))
		},
		between,
		func() error { return until("both read", more(200)) },
		func() error { return a.end() },
		func() error { return until("B owns all", fact(func(int) bool { return l.owned("B") == partitions })) },
		func() error { return until("B reads", more(100)) },
		func() error { sent, err = flow.end(); return err },
		func() error {
			return until("all is read", fact(func(int) bool { missing, _ := l.missing(sent); return missing == 0 }))
		},
		func() error { return b.end() },
		func() error { return errors.Join(a.failed(), b.failed(), l.wrong) },
	} {
		if err := do(); err != nil {
			return sent, l, err
		}
	}
	return sent, l, nil
}

package segment

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"kring/ring"
)

// nullLoop is a loop whose disk forgets: every op succeeds in the next turn. It serves to measure what the log itself costs.
type nullLoop struct {
	ops, next []*ring.Op
	ends      []*ring.Op
	bytes     int64
}

func (l *nullLoop) turn() {
	l.ops, l.next = l.next, l.ops[:0]
	for _, op := range l.ops {
		op.Done(op)
	}
	ends := l.ends
	l.ends = l.ends[len(l.ends):]
	for _, op := range ends {
		op.Done(op)
	}
	if len(l.ends) == 0 {
		l.ends = ends[:0]
	}
}

func (l *nullLoop) done(op *ring.Op)                                        { op.Err = nil; l.next = append(l.next, op) }
func (l *nullLoop) ID() int                                                 { return 0 }
func (l *nullLoop) Post(*ring.Message)                                      {}
func (l *nullLoop) AtTurnEnd(op *ring.Op)                                   { l.ends = append(l.ends, op) }
func (l *nullLoop) Offload(work func(), op *ring.Op)                        { work(); l.done(op) }
func (l *nullLoop) Alloc(n int) *ring.Buf                                   { return ring.NewBuf(make([]byte, n), func(*ring.Buf) {}) }
func (l *nullLoop) InUse() int64                                            { return 0 }
func (l *nullLoop) Rand() *rand.Rand                                        { return rand.New(rand.NewPCG(1, 2)) }
func (l *nullLoop) Listen(string) (ring.Listener, error)                    { return nil, ring.ErrClosed }
func (l *nullLoop) Accept(ring.Listener, func(ring.Socket, netip.AddrPort)) {}
func (l *nullLoop) Attach(ring.Socket, ring.Receiver) ring.Conn             { return nil }
func (l *nullLoop) Open(_ string, _ ring.OpenFlag, op *ring.Op)             { op.File = &nullFile{l}; l.done(op) }
func (l *nullLoop) Rename(_, _ string, op *ring.Op)                         { l.done(op) }
func (l *nullLoop) Remove(_ string, op *ring.Op)                            { l.done(op) }
func (l *nullLoop) MakeDir(_ string, op *ring.Op)                           { l.done(op) }
func (l *nullLoop) List(_ string, op *ring.Op)                              { op.Entries = nil; l.done(op) }
func (l *nullLoop) SyncDir(_ string, op *ring.Op)                           { l.done(op) }
func (l *nullLoop) Space(_ string, op *ring.Op)                             { op.N = 1 << 40; l.done(op) }
func (l *nullLoop) LockFile(string) (func(), error)                         { return func() {}, nil }
func (l *nullLoop) Now() time.Duration                                      { return 0 }
func (l *nullLoop) UnixMilli() int64                                        { return epoch }
func (l *nullLoop) After(time.Duration, *ring.Timer)                        {}
func (l *nullLoop) Cancel(*ring.Timer)                                      {}

type nullFile struct{ l *nullLoop }

func (f *nullFile) Read(b []byte, _ int64, op *ring.Op) { op.N = 0; f.l.done(op) }
func (f *nullFile) Through(_ []byte, at int64, _ func([]byte) int, op *ring.Op) {
	op.N = at
	f.l.done(op)
}
func (f *nullFile) Write(bufs [][]byte, _ int64, op *ring.Op) {
	for _, b := range bufs {
		f.l.bytes += int64(len(b))
	}
	f.l.done(op)
}
func (f *nullFile) Sync(op *ring.Op)                 { f.l.done(op) }
func (f *nullFile) Allocate(_, _ int64, op *ring.Op) { f.l.done(op) }
func (f *nullFile) Truncate(_ int64, op *ring.Op)    { f.l.done(op) }
func (f *nullFile) Size(op *ring.Op)                 { op.N = 0; op.Entries = make([]ring.Entry, 1); f.l.done(op) }
func (f *nullFile) WriteOut(_, _ int64)              {}
func (f *nullFile) SetTime(_ int64, op *ring.Op)     { op.Done(op) }
func (f *nullFile) Close()                           {}

func openNull(tb testing.TB, c Config) (*nullLoop, *Log) {
	loop := &nullLoop{}
	var l *Log
	ring.Go(loop, func(t *ring.Task) {
		var err error
		o := Options{Dir: "/data/t-0", Config: c}
		f := nullOpen{loop}
		if l, err = f.open(t, o); err != nil {
			tb.Fatal(err)
		}
	})
	for l == nil {
		loop.turn()
	}
	return loop, l
}

// nullOpen opens a log on a disk that has nothing and answers "not found" to nobody.
type nullOpen struct{ loop *nullLoop }

func (n nullOpen) open(t *ring.Task, o Options) (*Log, error) {
	l := newLog(n.loop, o)
	if err := l.createFirst(t, 0); err != nil {
		return nil, err
	}
	l.target = l.active()
	return l, nil
}

func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct {
		name    string
		size    int
		perTurn int
		id      int64
	}{{"1KiB", 1024, 1, -1}, {"1KiB-of-50-in-a-turn", 1024, 50, -1}, {"1KiB-idempotent", 1024, 1, 7}, {"16KiB", 16 << 10, 1, -1}} {
		b.Run(c.name, func(b *testing.B) {
			conf := DefaultConfig()
			loop, l := openNull(b, conf)
			data := records(1, epoch, string(make([]byte, c.size)))
			if c.id >= 0 {
				data = produced(c.id, 0, 0, 1, epoch, false)
			}
			appends := make([]Append, c.perTurn)
			done := 0
			for i := range appends {
				appends[i] = Append{Data: append([]byte(nil), data...), Done: func(*Append) { done++ }}
			}
			seq := int32(0)
			step := func(a *Append) {
				if c.id >= 0 {
					putSequence(a.Data, seq)
					seq++
				}
				l.Append(a)
				if a.Err != nil {
					b.Fatal(a.Err)
				}
			}
			for range 3000 { // until the tables have their size
				for i := range appends {
					step(&appends[i])
				}
				for done = 0; done < len(appends); {
					loop.turn()
				}
			}
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			done = 0
			n := 0
			for b.Loop() {
				step(&appends[n%c.perTurn])
				for n++; n%c.perTurn == 0 && done < n; { // the structs are used again
					loop.turn()
				}
			}
		})
	}
}

func BenchmarkReadTail(b *testing.B) {
	loop, l := openNull(b, DefaultConfig())
	a := Append{Data: records(1, epoch, string(make([]byte, 1000))), Done: func(*Append) {}}
	for range 1000 {
		l.Append(&a)
		loop.turn()
		loop.turn()
	}
	var r Range
	b.ReportAllocs()
	for b.Loop() {
		if !l.Read(l.End()-10, l.End(), 1<<20, true, &r) || r.Len == 0 {
			b.Fatal("a read at the tail had to wait")
		}
		r.Unpin()
	}
}

package ring

import (
	"math/rand/v2"
	"net/netip"
	"time"
)

// Loop is everything a room may ask of the world. Two worlds implement it: Kernel's loops (io_uring) and simring's.
//
// A loop is one goroutine; every method but Post, ID and Alive must be called on it, and every callback runs on it, never
// inside the call that asked for it. Nothing here blocks.
type Loop interface {
	Net
	Disk
	Clock

	// ID is the loop's index, 0 to count-1.
	ID() int
	// Post runs m.Run on this loop, in the order of posting per poster. Any goroutine may call it; it is the only way to
	// reach another loop. m belongs to the loop until Run is called.
	Post(m *Message)
	// AtTurnEnd runs op.Done once, after the completions at hand have been handled and before the loop enters the
	// kernel: the place to write in one go what a turn has gathered. What it submits leaves with the same enter.
	AtTurnEnd(op *Op)
	// Offload runs work on a helper goroutine, then op.Done here. work must not touch what a loop owns.
	Offload(work func(), op *Op)
	// Alloc lends a buffer of at least n bytes (len(b.B) >= n, contents undefined) with one reference. Its memory lies
	// outside the Go heap; the loop's ledger counts it.
	Alloc(n int) *Buf
	// InUse is the number of buffer bytes lent out.
	InUse() int64
	// Rand is the loop's own generator; simring seeds it.
	Rand() *rand.Rand
}

// Op is one request to the world. The caller owns it and may reuse it once Done has begun.
type Op struct {
	// Done is called once, on the loop, never inside the submitting call.
	Done func(*Op)
	// N is the result where one is a number: bytes read, a size.
	N int64
	// Err is nil, or what the kernel said (errors.Is works with unix.Errno and fs.ErrNotExist).
	Err error
	// File is set by Open.
	File File
	// Entries is set by List, sorted by name.
	Entries []Entry

	// These belong to the world while the op is under way.
	next  *Op
	parts []Part
	work  func()
}

// Message is a call from one loop (or goroutine) to another; embed it and set Run once.
type Message struct {
	// Run is called on the receiving loop.
	Run func(*Message)
	// From is the loop that posts, if it is one and says so: a sleeping receiver is then woken by the poster's ring, with its
	// next enter, and not by a system call of its own.
	From Loop
	next *Message
}

// Part is a piece of what Send sends: Bytes, or Len bytes of File from From on. Bytes must stay unchanged until the op is done.
type Part struct {
	Bytes     []byte
	File      File
	From, Len int64
}

// Net is the network.
type Net interface {
	// Listen binds host:port. It is synchronous and for start-up only.
	Listen(addr string) (Listener, error)
	// Accept calls fn for each connection, from now on until the listener is closed; fn passes the socket to Attach on
	// the loop that shall own it.
	Accept(l Listener, fn func(s Socket, peer netip.AddrPort))
	// Attach makes the socket a connection of this loop and starts to receive.
	Attach(s Socket, r Receiver) Conn
}

// Listener is a bound address; Close stops its Accept.
type Listener interface {
	Addr() netip.AddrPort
	Close()
}

// Socket is an accepted connection that no loop owns yet.
type Socket uint64

// Receiver is who a connection's bytes are for.
type Receiver interface {
	// Received gets every byte that has come and was not consumed, contiguous, in memory of b (Retain b to keep it past
	// the call; the bytes are the receiver's to change). It returns how many it has consumed from the front, and how
	// many contiguous bytes, counted from the first one not consumed, it needs before it is called again (0: any more).
	// The receiver has checked need against its limits: memory for it is lent as the bytes arrive.
	Received(data []byte, b *Buf) (consumed, need int)
	// Closed is called once, last, when no op of the connection is under way: nil if we or the peer closed in order.
	Closed(err error)
}

// Conn is a connected stream, owned by the loop that attached it.
type Conn interface {
	// Send queues parts behind what was queued before; op is done when all of them left, or with the error that closed
	// the connection. The slice and what it names belong to the loop until then.
	Send(parts []Part, op *Op)
	// Pause stops receiving (the peer sees a full window); Resume goes on. What Received was not given stays unread.
	Pause()
	Resume()
	// Close ends the connection at once: queued sends fail, then Receiver.Closed is called. It may be called twice.
	Close()
	// CloseAfterSend closes when everything queued has left.
	CloseAfterSend()
	Peer() netip.AddrPort
	Local() netip.AddrPort
}

// OpenFlag says how Open opens.
type OpenFlag int

// The flags of Open; without Write the file is read only.
const (
	Write     OpenFlag = 1 << iota // read and write
	Create                         // make it if absent
	Exclusive                      // fail with fs.ErrExist if present
	Cut                            // cut it to nothing
)

// Entry is what List knows of a name.
type Entry struct {
	Name    string
	Dir     bool
	Special bool // a pipe, a socket or a device
	Size    int64
	ModTime time.Time
}

// Disk is the file system. Names are paths as given; errors are *fs.PathError around the kernel's.
type Disk interface {
	Open(name string, how OpenFlag, op *Op)
	Rename(from, to string, op *Op)
	// Remove removes a file or an empty directory.
	Remove(name string, op *Op)
	// MakeDir makes a directory and its parents; one that is there is no error.
	MakeDir(name string, op *Op)
	List(dir string, op *Op)
	// SyncDir makes names in dir durable.
	SyncDir(dir string, op *Op)
	// Space puts the free bytes of dir's file system into op.N, all it has into op.Entries[0].Size.
	Space(dir string, op *Op)
	// LockFile takes the exclusive fcntl write lock on name, creating it (as Kafka's .lock), and holds it until
	// the returned function is called, which also removes the file. Synchronous, for start-up only.
	LockFile(name string) (unlock func(), err error)
}

// File is an open file, used by one loop. Ops on it may run at the same time unless they touch the same bytes.
type File interface {
	// Read fills b from at; op.N is less than len(b) only at the end of the file.
	Read(b []byte, at int64, op *Op)
	// Through reads from at on to the end, a piece at a time into b, and gives each to look, which says how many bytes from the
	// front it is done with: what is left is given again with what follows. It ends when look says ^n, done with n and with all,
	// or is done with nothing of a full b or of the file's end; op.N is how far look has come. look runs on a helper and must not
	// touch what a loop owns.
	Through(b []byte, at int64, look func([]byte) int, op *Op)
	// Write writes bufs one after the other from at on: all of it or an error. bufs and what it names belong to the loop until
	// done. The world chooses the path (kring.write.path).
	Write(bufs [][]byte, at int64, op *Op)
	// Sync is fdatasync. After an error the file's content is unknown: never call it again.
	Sync(op *Op)
	// Allocate reserves blocks for n bytes from at without changing the size (FALLOC_FL_KEEP_SIZE).
	Allocate(at, n int64, op *Op)
	// Truncate sets the size.
	Truncate(size int64, op *Op)
	// Size puts the size into op.N, the modification time (Unix ms) into op.Entries[0].
	Size(op *Op)
	// SetTime sets the modification time (Unix ms).
	SetTime(modMilli int64, op *Op)
	// WriteOut starts write-back of a range without waiting (sync_file_range); errors do not matter.
	WriteOut(at, n int64)
	// Close gives the descriptor back once no op or send uses it.
	Close()
}

// Clock is time.
type Clock interface {
	// Now is monotonic, from an arbitrary start; it is read once per turn.
	Now() time.Duration
	// UnixMilli is the wall clock in ms, read once per turn.
	UnixMilli() int64
	// After fires t after d; a timer that is set already is moved.
	After(d time.Duration, t *Timer)
	// Cancel stops t; it is no error if it is not set.
	Cancel(t *Timer)
}

// Timer is caller-owned; set Fire once.
type Timer struct {
	Fire func(*Timer)

	// at, next and prev belong to the wheel.
	at         time.Duration
	next, prev *Timer
	set        bool
}

package ring

import (
	"fmt"
	"log/slog"
)

// Options are what a Kernel is made with; the zero value is a good one.
type Options struct {
	// Loops is the number of loops; 0 means 1.
	Loops int
	// WritePath is how appends reach the disk: "ring", "pwrite", or "auto" ("" too), which probes each log dir.
	WritePath string
	// Dirs are the log dirs: a file's write path is that of the dir it lies in.
	Dirs []string
	// MaxMemory is the number of bytes one loop lends before it stops to receive; 0 means 1 GiB.
	MaxMemory int64
	// WriteOutBytes is how many bytes of a file may wait dirty before they are written out early; 0 means 16 MiB.
	WriteOutBytes int64
	// SendBuffer and ReceiveBuffer are the sizes asked for a connection's socket buffers (SO_SNDBUF, SO_RCVBUF); 0 leaves them to
	// the kernel, which lets them grow to megabytes. A send buffer of some hundred KiB makes fetches cheaper: what is sent is
	// still in the processor's cache when the peer reads it, and the peer's acknowledgements push what waits.
	SendBuffer, ReceiveBuffer int
	// Log gets what was degraded and why; nil means slog.Default().
	Log *slog.Logger
	// Crashing, if set, is called when a loop or a helper panics, before the process ends with a trace.
	Crashing func()
}

// Refused says that the kernel does not give what the loops need.
type Refused struct {
	What  string // what was asked for
	Cause string // why it was refused
	Cure  string // what the operator can do
	Err   error  // what the kernel said, if it said anything
}

func (r *Refused) Error() string { return fmt.Sprintf("%s: %s; %s", r.What, r.Cause, r.Cure) }

// Unwrap is what the kernel said.
func (r *Refused) Unwrap() error { return r.Err }

// Finding is one line of a probe.
type Finding struct {
	// What is the thing looked at: "kernel", "op recv multishot", "write path /var/lib/kring".
	What string
	// State is what was found: "6.18.0", "yes", "pwrite".
	State string
	// OK is false when the broker cannot run, or not well, with it.
	OK bool
	// Cure is what to do where OK is false, or what would be better; empty where there is nothing to do.
	Cure string
}

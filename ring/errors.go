package ring

import "errors"

// Errors of the door itself; what the kernel says comes as *fs.PathError or unix.Errno.
var (
	// ErrTooLarge: a file is larger than its reader allows.
	ErrTooLarge = errors.New("file too large")
	// ErrNotRegular: what a name stands for is a pipe, a socket or a device, where a file is to be.
	ErrNotRegular = errors.New("not a regular file")
	// ErrClosed: the connection or file was closed by us.
	ErrClosed = errors.New("closed")
	// ErrCanceled: the loop stops.
	ErrCanceled = errors.New("canceled")
)

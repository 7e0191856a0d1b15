package ring

import (
	"errors"

	"golang.org/x/sys/unix"
)

// NoSpace says whether err means that the disk or a quota is full: what can pass without a restart.
func NoSpace(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// NoDescriptors says whether err means that the process or the machine has no file descriptor left, which passes too.
func NoDescriptors(err error) bool { return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) }

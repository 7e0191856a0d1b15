package ring

import (
	"errors"

	"golang.org/x/sys/unix"
)

// NoSpace says whether err means that the disk or a quota is full: what can pass without a restart.
func NoSpace(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

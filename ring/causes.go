package ring

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// NoSpace says whether err means that the disk or a quota is full: what can pass without a restart.
func NoSpace(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// NoDescriptors says whether err means that the process or the machine has no file descriptor left, which passes too.
func NoDescriptors(err error) bool { return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) }

// OfNames says whether err tells of what a name stands for or who may use it, and not of the disk that should hold it.
func OfNames(err error) bool {
	var e unix.Errno
	if !errors.As(err, &e) {
		return errors.Is(err, ErrNotRegular) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrPermission)
	}
	switch e {
	case unix.ENOENT, unix.EEXIST, unix.EACCES, unix.EPERM, unix.ENOTDIR, unix.EISDIR, unix.ENOTEMPTY, unix.ELOOP, unix.ENAMETOOLONG:
		return true
	}
	return false
}

package ring

import (
	"bytes"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// fcntl's locks belong to the process: a second one would be granted, and closing any descriptor of the file would give the
// first one up. So it is remembered here which files this process holds.
var (
	heldMu sync.Mutex
	held   = map[inode]bool{}
)

type inode struct{ dev, ino uint64 }

// heldElsewhere is the errno of a lock that another process holds, in words an operator can use.
type heldElsewhere struct {
	error
	holder string // its number and name; empty if it cannot be known
}

func (h heldElsewhere) Error() string {
	return "another process uses the directory, Kring or Kafka" + h.holder + "; stop it first"
}

func (h heldElsewhere) Unwrap() error { return h.error }

// holderOf names the process that holds the lock of an open file. None is named of another PID namespace, or if it has just gone.
func holderOf(fd int) string {
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(uintptr(fd), unix.F_GETLK, &lock); err != nil || lock.Type == unix.F_UNLCK || lock.Pid <= 0 {
		return ""
	}
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", lock.Pid))
	if err != nil {
		return fmt.Sprintf(" (process %d)", lock.Pid)
	}
	return fmt.Sprintf(" (process %d, %s)", lock.Pid, bytes.TrimSpace(name))
}

// LockFile takes the lock java.nio's FileChannel.tryLock takes: fcntl's, on the whole file.
func (l *loop) LockFile(name string) (func(), error) {
	heldMu.Lock()
	defer heldMu.Unlock()
	for {
		var there, mine unix.Stat_t
		if unix.Stat(name, &there) == nil && held[inode{there.Dev, there.Ino}] {
			return nil, pathError("lock", name, fmt.Errorf("this process uses the directory already: %w", unix.EAGAIN))
		}
		fd, err := unix.Open(name, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o644)
		if err != nil {
			return nil, pathError("open", name, err)
		}
		if err = unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
			if err == unix.EAGAIN || err == unix.EACCES {
				err = heldElsewhere{err, holderOf(fd)}
			}
			unix.Close(fd)
			return nil, pathError("lock", name, err)
		}
		if unix.Fstat(fd, &mine) == nil && unix.Stat(name, &there) == nil && mine.Ino == there.Ino && mine.Dev == there.Dev {
			id := inode{mine.Dev, mine.Ino}
			held[id] = true
			return func() { unlock(fd, name, id) }, nil
		}
		unix.Close(fd) // its holder removed it between our open and our lock
	}
}

func unlock(fd int, name string, id inode) {
	heldMu.Lock()
	defer heldMu.Unlock()
	if held[id] {
		delete(held, id)
		unix.Unlink(name)
		unix.Close(fd)
	}
}

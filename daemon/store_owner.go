package main

import (
	"log/slog"
	"os"
	"os/user"
	"strconv"
	"syscall"

	"kring/metadata/embedded"
)

// stranger tells whether we are root in a directory of another user's, who could not open what we make.
func stranger(dir string) (owner *syscall.Stat_t, is bool) {
	info, err := os.Stat(dir)
	if err != nil || os.Geteuid() != 0 {
		return nil, false
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	return owner, ok && owner.Uid != 0
}

// giveBack gives the files that root has made in a log dir of another user's to that user. A link is no file of ours, and is left alone.
func giveBack(dir string) error {
	owner, is := stranger(dir)
	if !is {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !embedded.IsFile(e.Name()) && e.Name() != ".lock" {
			continue
		}
		if err := giveFile(dir+"/"+e.Name(), owner); err != nil {
			return err
		}
	}
	return nil
}

func giveFile(name string, owner *syscall.Stat_t) error {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil // gone, or a link
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	is, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() || is.Uid != 0 || is.Nlink != 1 {
		return nil
	}
	return f.Chown(int(owner.Uid), int(owner.Gid))
}

// warnStranger tells of log dirs of another user's that root serves.
func warnStranger(dirs []string, log *slog.Logger) {
	for _, dir := range dirs {
		if owner, is := stranger(dir); is {
			name := userName(owner.Uid)
			log.Warn("root serves a log dir of another user's, who will not be able to open what is written now: start the broker as that user "+
				"(sudo -u "+name+"), or chown -R the log dir afterwards", "dir", dir, "owner", name)
		}
	}
}

func userName(id uint32) string {
	text := strconv.FormatUint(uint64(id), 10)
	if u, err := user.LookupId(text); err == nil {
		return u.Username
	}
	return "'#" + text + "'" // as sudo takes it
}

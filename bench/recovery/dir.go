package main

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// dir is the log dir that is recovered over and over, and what it held besides batches.
type dir struct{ path, kept string }

func isLog(name string) bool {
	return strings.HasSuffix(name, ".log") && !strings.HasPrefix(name, "kring-store")
}

// keep copies everything but the batches.
func (d dir) keep() error {
	return filepath.WalkDir(d.path, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := d.kept + strings.TrimPrefix(name, d.path)
		if e.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		if isLog(e.Name()) {
			return nil
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(to, b, 0o644)
	})
}

// putBack puts what keep copied in the place of what is there now. For Kafka the name of the cluster is left out: its ZooKeeper
// has another one.
func (d dir) putBack(forKafka bool) error {
	err := filepath.WalkDir(d.path, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || isLog(e.Name()) {
			return err
		}
		return os.Remove(name)
	})
	if err != nil {
		return err
	}
	return filepath.WalkDir(d.kept, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if forKafka && e.Name() == "meta.properties" {
			b = []byte("version=0\nbroker.id=1\n")
		}
		return os.WriteFile(d.path+strings.TrimPrefix(name, d.kept), b, 0o644)
	})
}

// warm reads the batches into the page cache, once nothing is left to be written, and says how many bytes there are.
func (d dir) warm(ctx context.Context) (size int64, err error) {
	syscall.Sync()
	b := make([]byte, 1<<20)
	err = filepath.WalkDir(d.path, func(name string, e fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || e.IsDir() || !isLog(e.Name()) {
			return err
		}
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		for {
			n, err := f.Read(b)
			size += int64(n)
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
		}
	})
	return size, err
}

// size is that of the batches.
func (d dir) size() (size int64) {
	filepath.WalkDir(d.path, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && isLog(e.Name()) {
			if info, err := e.Info(); err == nil {
				size += info.Size()
			}
		}
		return nil
	})
	return size
}

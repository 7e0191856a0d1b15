package embedded

import (
	"errors"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"kring/metadata"
)

// create asks for a node and returns where the answer will be.
func (b *bench) create(t *testing.T, path string) (answered *bool, failed *error) {
	t.Helper()
	answered, failed = new(bool), new(error)
	b.do(t, func() {
		b.store.Do([]metadata.Op{{Kind: metadata.OpCreate, Path: path}}, func(_ []metadata.Result, err error) {
			*answered, *failed = true, err
		})
	})
	return answered, failed
}

func TestChangesWaitWhileTheDiskIsFull(t *testing.T) {
	b := newBench(1)
	said := &strings.Builder{}
	b.options.Log = slog.New(slog.NewTextHandler(said, nil))
	if err := b.start(t); err != nil {
		t.Fatal(err)
	}
	b.m.FailNext("write", "*kring-store-*", 0, 5, syscall.ENOSPC)
	answered, failed := b.create(t, "/a")
	b.w.RunFor(3 * fullRetry)
	if *answered || b.store.fenced != nil {
		t.Fatalf("a change on a full disk: answered %v (%v), fenced: %v", *answered, *failed, b.store.fenced)
	}
	if err := b.w.RunUntil("room", time.Minute, func() bool { return *answered }); err != nil || *failed != nil {
		t.Fatalf("with room again: %v, %v", err, *failed)
	}
	if text := said.String(); strings.Count(text, "no room for the cluster's state") != 1 || strings.Count(text, "there is room again") != 1 {
		t.Errorf("said:\n%s", text)
	}
	b.m.Crash()
	if err := b.start(t); err != nil {
		t.Fatal(err)
	}
	if b.store.tree.nodes["/a"] == nil {
		t.Error("a change that was answered is gone after a power cut")
	}
}

func TestAFullDiskDoesNotHoldUpTheStop(t *testing.T) {
	b := newBench(2)
	if err := b.start(t); err != nil {
		t.Fatal(err)
	}
	b.m.FailNext("write", "*kring-store-*", 0, 1000, syscall.ENOSPC)
	answered, failed := b.create(t, "/a")
	b.w.RunFor(fullRetry / 2)
	b.close(t) // says that the store is fenced
	if !*answered || !errors.Is(*failed, metadata.ErrFenced) {
		t.Errorf("the change that waited: answered %v, %v", *answered, *failed)
	}
}

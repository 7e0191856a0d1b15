package controller

import (
	"bytes"
	"io/fs"
	"log/slog"
	"strings"
	"syscall"
	"testing"
)

// fullDisk is what the broker says of a log it could not make.
var fullDisk = &fs.PathError{Op: "mkdir", Path: "/data/full-0", Err: syscall.ENOSPC}

// TestCreationSaysThatLogsCannotBeMade: who creates a topic, or adds partitions, hears at once that the broker could not make their logs,
// though they are there; a topic in the same request is not held up by it.
func TestCreationSaysThatLogsCannotBeMade(t *testing.T) {
	x := newCluster(t, 1)
	x.start()
	x.mustCreate(topicNamed("grown", 1))
	x.failing["full"] = fullDisk
	x.failing["grown"] = fullDisk
	out := x.create(minute, topicNamed("full", 2), topicNamed("well", 1))
	if kindOf(out[0].Err) != StorageError || !strings.Contains(out[0].Err.Error(), "no space left on device; it is made as soon as there is room") {
		t.Errorf("a topic without logs: %v", out[0].Err)
	}
	if out[0].ID.IsZero() || out[1].Err != nil {
		t.Errorf("the topics: %+v", out)
	}
	var errs []error
	x.do(func(done func()) {
		x.c.CreatePartitions([]CreatePartitions{{Topic: "grown", Count: 3}}, minute, func(e []error) { errs = e; done() })
	})
	if kindOf(errs[0]) != StorageError {
		t.Errorf("partitions without logs: %v", errs[0])
	}
	x.settle()
	if len(x.c.waits.order)+len(x.c.waits.byTopic) != 0 {
		t.Error("waits are left")
	}
	x.failing = map[string]error{}
	if out := x.delete(minute, DeleteTopic{Name: "full"}); out[0].Err != nil {
		t.Errorf("deleting it: %v", out[0].Err)
	}
	x.stop()
}

// TestManyOfflinePartitionsAreTwoLines: a broker that cannot lead is told of with a count and a few names, not by partition.
func TestManyOfflinePartitionsAreTwoLines(t *testing.T) {
	x := newCluster(t, 1)
	var log bytes.Buffer
	x.set = func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) }
	x.start()
	x.failing["full"] = fullDisk
	x.create(minute, topicNamed("full", 50))
	x.settle()
	said := log.String()
	for _, want := range []string{
		`msg="replicas cannot lead: their logs are offline" partitions=50 names="full-0 full-1 full-2 full-3 full-4 full-5 full-6 full-7 full-8 ` +
			`full-9 and others" error="mkdir /data/full-0: no space left on device"`,
		`msg="no replica can lead, partitions stay offline" partitions=50 names="full-0 `,
	} {
		if strings.Count(said, want) != 1 {
			t.Errorf("not once: %s\n%s", want, said)
		}
	}
	if n := strings.Count(said, "full-3"); n > 2 {
		t.Errorf("%d lines name one partition:\n%s", n, said)
	}
	x.stop()
}

package swap

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/twmb/franz-go/pkg/kadm"

	"kring/conformance/stage"
)

// refusedToServe holds kring against what it exported: a Kafka may have gone on there.
func (h *house) refusedToServe(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, stage.Kring(t), "broker", h.properties, "--override", "zookeeper.connect=")
	out, _ := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 7 || !strings.Contains(string(out), "was exported to ZooKeeper "+h.zk) {
		t.Errorf("kring on a store that was exported: %v\n%s", cmd.ProcessState, out)
	}
}

// kafkaRuns does to a tree what a start of Kafka and a new topic do.
func kafkaRuns(t *testing.T, c *zk.Conn, topic string) {
	t.Helper()
	data, _, err := c.Get("/controller_epoch")
	if err != nil {
		t.Fatal(err)
	}
	epoch, err := strconv.Atoi(string(data))
	if err != nil {
		t.Fatal(err)
	}
	put(t, c, "/controller_epoch", []byte(strconv.Itoa(epoch+1)))
	put(t, c, "/brokers/topics/"+topic, []byte(`{"partitions":{"0":[1]},"topic_id":"iekmJcKISeKODFsrmS3i7A","adding_replicas":{},"removing_replicas":{},"version":3}`))
	put(t, c, "/config/topics/"+topic, []byte(`{"version":1,"config":{}}`))
}

// kringRuns starts a kring n times, which makes a topic in its first life.
func kringRuns(t *testing.T, dir string, n int, topic string) {
	t.Helper()
	for i := range n {
		k := startLone(t, dir)
		if i == 0 {
			k.admin(t, func(ctx context.Context, adm *kadm.Client) error {
				_, err := adm.CreateTopic(ctx, 1, 1, nil, topic)
				return err
			})
		}
		k.stop(t)
	}
}

// TestForgottenStep: whichever step was forgotten, nothing that only one side has is lost unless somebody says so, and what is replaced
// is kept.
func TestForgottenStep(t *testing.T) {
	needsPeers(t)
	addr, dir := startZooKeeper(t), t.TempDir()+"/data"
	flags := []string{"--zookeeper", addr, "--log-dir", dir, "--timeout", "60s"}
	command := func(args ...string) []string { return append(slices.Clone(args), flags...) }
	refused := func(args []string, texts ...string) {
		t.Helper()
		said, got := store(t, args...)
		for _, text := range texts {
			if got != 7 || !strings.Contains(said, text) || strings.Count(said, "\n") != 1 {
				t.Errorf("kring store %v: status %d, not 7 with %q:\n%s", args, got, text, said)
			}
		}
	}
	kringRuns(t, dir, 1, "old")
	storeDone(t, command("export", "--create")...)
	c := dial(t, addr)

	// Kafka runs, the import is forgotten: kring is told that it may go on, and does, three times.
	kafkaRuns(t, c, "made-in-kafka")
	if said, status := store(t, "export", "--undo", "--log-dir", dir); status != 0 {
		t.Fatal(said)
	}
	kringRuns(t, dir, 3, "kr-only")
	choice := []string{"both sides were used since the last hand-over", "loses 1 topic (kr-only)", "loses 1 topic (made-in-kafka)", "--overwrite", "a copy is kept"}
	refused(command("import"), choice...)
	refused(command("export"), choice...)
	refused(command("export", "--dry-run"), choice...)
	if got := storeDone(t, command("export", "--overwrite", "--dry-run")...); !slices.Equal(got.Lost, []string{"made-in-kafka"}) {
		t.Errorf("%+v", got)
	}
	said, status := store(t, command("import", "--replace", "--dry-run")...)
	if status != 0 || !strings.Contains(said, "only the old store had the topic kr-only\n") || !strings.Contains(said, " created, ") ||
		strings.Contains(said, "delete /brokers/topics/kr-only") {
		t.Errorf("%s", said)
	}
	if said, _ := store(t, command("import", "--replace", "--dry-run", "-v")...); !strings.Contains(said, "delete /brokers/topics/kr-only\n") ||
		!strings.Contains(said, "create /brokers/topics/made-in-kafka\n") {
		t.Errorf("%s", said)
	}
	got := storeDone(t, command("import", "--replace")...)
	if !slices.Equal(got.Lost, []string{"kr-only"}) || !strings.HasSuffix(got.Kept, ".replaced-1") {
		t.Errorf("%+v", got)
	}
	restored := restore(t, got.Kept)
	if said, status := store(t, "export", "--overwrite", "--dry-run", "--zookeeper", addr, "--log-dir", restored); status != 0 ||
		!strings.Contains(said, "create /brokers/topics/kr-only\n") {
		t.Errorf("what was kept is not the old store:\n%s", said)
	}

	// Kring runs, the export is forgotten; with as many starts on both sides the epochs are equal.
	kringRuns(t, dir, 1, "kr-again")
	refused(command("import", "--replace"), "only the store in "+dir+" was used: kring store export brings ZooKeeper")
	kafkaRuns(t, c, "kafka-again")
	refused(command("import"), "both sides were used", "(kr-again)", "(kafka-again)")
	refused(command("export"), "both sides were used", "(kr-again)", "(kafka-again)")
	if got := storeDone(t, command("export", "--overwrite")...); !slices.Equal(got.Lost, []string{"kafka-again"}) {
		t.Errorf("%+v", got)
	}
	if got := storeDone(t, command("import")...); got.Lost != nil || len(got.Deleted) > 0 {
		t.Errorf("%+v", got)
	}
	refused(append([]string{"export", "--zookeeper", addr + "/kafak"}, flags[2:]...), "/kafak holds nothing of Kafka's", "the last hand-over: imported from ZooKeeper "+addr)
	startLone(t, dir)
}

// restore makes a log dir of what was kept under other names.
func restore(t *testing.T, kept string) string {
	t.Helper()
	names, err := filepath.Glob(kept)
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %v %v", kept, names, err)
	}
	to, ending := t.TempDir(), filepath.Ext(kept)
	for _, name := range append(names, filepath.Dir(kept)+"/meta.properties") {
		b, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(to+"/"+strings.TrimSuffix(filepath.Base(name), ending), b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// TestInterruptedExport: a mark of an export that was not finished keeps kring and an import away, until another finishes it.
func TestInterruptedExport(t *testing.T) {
	needsPeers(t)
	addr, dir := startZooKeeper(t), t.TempDir()+"/data"
	flags := []string{"--zookeeper", addr, "--log-dir", dir}
	kringRuns(t, dir, 1, "old")
	storeDone(t, append([]string{"export", "--create"}, flags...)...)
	storeDone(t, append([]string{"import"}, flags...)...)
	kringRuns(t, dir, 1, "new")
	c := dial(t, addr)
	epoch, _, err := c.Get("/controller_epoch")
	if err != nil {
		t.Fatal(err)
	}
	name := dir + "/kring-store-handover"
	text := `{"action":"begun","zookeeper":"` + addr + `","at":"2001-02-03T04:05:06Z","controllerEpoch":9,"tree":"00","before":` + string(epoch) + `}`
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	put(t, c, "/config/topics/new", nil) // what there was time for
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, stage.Kring(t), "broker", "--override", "log.dirs="+dir, "--override", "listeners=PLAINTEXT://127.0.0.1:0")
	if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 7 || !strings.Contains(string(out), "was begun at 2001-02-03T04:05:06Z and not finished") {
		t.Errorf("%v\n%s", cmd.ProcessState, out)
	}
	said, status := store(t, append([]string{"import", "--replace", "--timeout", "60s"}, flags...)...)
	if status != 7 || !strings.Contains(said, "may have a part of it; kring store export finishes it") {
		t.Errorf("status %d\n%s", status, said)
	}
	storeDone(t, append([]string{"export"}, flags...)...)
	if data, _, err := c.Get("/config/topics/new"); err != nil || len(data) == 0 {
		t.Errorf("the export was not finished: %q %v", data, err)
	}
	if got := storeDone(t, append([]string{"import"}, flags...)...); got.Created != nil || got.Changed != nil || got.Deleted != nil {
		t.Errorf("%+v", got)
	}
}

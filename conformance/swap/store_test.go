package swap

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"kring/conformance/stage"
)

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// dial is a session of our own with a ZooKeeper. One that has just started may not answer on the first connection.
func dial(t *testing.T, addr string) *zk.Conn {
	t.Helper()
	for until := time.Now().Add(patience); time.Now().Before(until); {
		c, events, err := zk.Connect([]string{addr}, 10*time.Second, zk.WithLogger(quiet{}))
		if err != nil {
			t.Fatal(err)
		}
		late := time.After(5 * time.Second)
		for waiting := true; waiting; {
			select {
			case e := <-events:
				if e.State == zk.StateHasSession {
					t.Cleanup(c.Close)
					return c
				}
			case <-late:
				waiting = false
			}
		}
		c.Close()
	}
	t.Fatal("no session")
	return nil
}

var everybody = zk.WorldACL(zk.PermAll)

func put(t *testing.T, c *zk.Conn, path string, data []byte) {
	t.Helper()
	_, err := c.Set(path, data, -1)
	if err == zk.ErrNoNode {
		_, err = c.Create(path, data, 0, everybody)
	}
	if err != nil {
		t.Fatal(path, err)
	}
}

// lone is a kring in a directory of its own.
type lone struct {
	dir, addr string
	cmd       *exec.Cmd
}

func startLone(t *testing.T, dir string) *lone {
	t.Helper()
	k := &lone{dir: dir, addr: "127.0.0.1:" + stage.FreePort(t)}
	k.cmd = exec.Command(stage.Kring(t), "broker", "--override", "log.dirs="+dir, "--override", "listeners=PLAINTEXT://"+k.addr, "--override", "broker.id=1")
	var said strings.Builder
	k.cmd.Stdout, k.cmd.Stderr = &said, &said
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if k.cmd != nil {
			_ = k.cmd.Process.Kill()
			_ = k.cmd.Wait()
		}
		if t.Failed() {
			t.Log(said.String())
		}
	})
	h := &house{t: t, addr: k.addr}
	h.await()
	return k
}

func (k *lone) stop(t *testing.T) {
	t.Helper()
	_ = k.cmd.Process.Signal(syscall.SIGTERM)
	if err := k.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	k.cmd = nil
}

func (k *lone) admin(t *testing.T, do func(context.Context, *kadm.Client) error) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(k.addr))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := do(ctx, kadm.NewClient(cl)); err != nil {
		t.Fatal(err)
	}
}

// alters changes a setting n times: each makes a node with a number.
func (k *lone) alters(t *testing.T, topic string, n int) {
	t.Helper()
	k.admin(t, func(ctx context.Context, adm *kadm.Client) error {
		for i := range n {
			value := fmt.Sprint(1000 + i)
			if _, err := adm.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: "retention.ms", Value: &value}}, topic); err != nil {
				return err
			}
		}
		return nil
	})
}

func needsPeers(t *testing.T) {
	if os.Getenv("KRING_PEERS_TEST") == "" {
		t.Skip("needs a real ZooKeeper; make conformance sets KRING_PEERS_TEST")
	}
}

// TestStoreGoesBothWays: an empty ZooKeeper gets the whole tree, then only what differs; an import of what was exported is the same.
func TestStoreGoesBothWays(t *testing.T) {
	needsPeers(t)
	addr, dir := startZooKeeper(t), t.TempDir()+"/data"
	k := startLone(t, dir)
	k.admin(t, func(ctx context.Context, adm *kadm.Client) error {
		_, err := adm.CreateTopics(ctx, 3, 1, nil, "first", "second")
		return err
	})
	k.alters(t, "first", 5)
	k.stop(t)
	flags := []string{"--zookeeper", addr + "/a/b", "--log-dir", dir}
	export := append([]string{"export"}, flags...)

	if said, status := store(t, export...); status != 7 || !strings.Contains(said, "/a/b holds nothing of Kafka's") {
		t.Errorf("status %d:\n%s", status, said)
	}
	dry := storeDone(t, append(export, "--dry-run", "--create")...)
	all := storeDone(t, append(export, "--create")...)
	if len(dry.Created) < 20 || !slices.Equal(dry.Created, all.Created) || all.Topics != 2 {
		t.Errorf("%d would be created, %d were: %+v", len(dry.Created), len(all.Created), all)
	}
	c := dial(t, addr)
	if number, err := c.Create("/a/b/config/changes/config_change_", nil, zk.FlagSequence, everybody); err != nil ||
		number != "/a/b/config/changes/config_change_0000000005" {
		t.Errorf("the next change is %s %v", number, err)
	} else if err := c.Delete(number, -1); err != nil {
		t.Fatal(err)
	}
	put(t, c, "/a/b/foreign", []byte("of others"))
	put(t, c, "/a/b/config/topics/first", []byte{0xff, 0xfe})
	put(t, c, "/a/b/brokers/topics/third", nil)
	if got := storeDone(t, append(export, "--overwrite")...); got.Created != nil || !slices.Equal(got.Changed, []string{"/config/topics/first"}) ||
		!slices.Equal(got.Deleted, []string{"/brokers/topics/third"}) || !slices.Equal(got.Lost, []string{"third"}) || !slices.Equal(got.LeftAlone, []string{"/foreign"}) {
		t.Errorf("%+v", got)
	}
	if data, _, err := c.Get("/a/b/foreign"); err != nil || string(data) != "of others" {
		t.Errorf("%q %v", data, err)
	}

	put(t, c, "/a/b/consumers/odd", []byte{0xff, 0xfe, 0})
	if got := storeDone(t, append([]string{"import"}, flags...)...); !got.Replaced || got.Lost != nil || got.Topics != 2 || !slices.Equal(got.LeftAlone, []string{"/foreign"}) {
		t.Errorf("%+v", got)
	}
	if got := storeDone(t, export...); len(got.Created)+len(got.Changed)+len(got.Deleted) > 0 {
		t.Errorf("what was imported differs: %+v", got)
	}
	storeDone(t, append([]string{"import"}, flags...)...)
	startLone(t, dir).admin(t, func(ctx context.Context, adm *kadm.Client) error {
		list, err := adm.ListTopics(ctx)
		if err == nil && (!list.Has("first") || !list.Has("second") || len(list) != 2) {
			err = fmt.Errorf("topics %v", list.Names())
		}
		return err
	})
}

// TestStoreRefuses what would be wrong, in one line, with a status, and without a change.
func TestStoreRefuses(t *testing.T) {
	needsPeers(t)
	addr, dir := startZooKeeper(t), t.TempDir()+"/data"
	k := startLone(t, dir)
	k.admin(t, func(ctx context.Context, adm *kadm.Client) error {
		_, err := adm.CreateTopics(ctx, 1, 1, nil, "words")
		return err
	})
	flags := []string{"--zookeeper", addr, "--log-dir", dir, "--timeout", "60s"}
	bring, give := append([]string{"import"}, flags...), append([]string{"export"}, flags...)
	over := append(bring, "--replace")
	refused := func(status int, text string, args ...string) {
		t.Helper()
		said, got := store(t, args...)
		if got != status || !strings.Contains(said, text) || strings.Count(said, "\n") != 1 {
			t.Errorf("kring store %v: status %d, not %d with %q:\n%s", args, got, status, text, said)
		}
	}
	refused(6, "another process uses the directory", give...)
	refused(6, "another process uses the directory", bring...)
	k.stop(t)
	refused(7, "there is no /cluster/id", over...)
	refused(7, "holds nothing of Kafka's: look at the address and the chroot; if a whole new tree is to be made there, --create", give...)
	storeDone(t, append(give, "--create")...)
	refused(3, "give server.properties or --log-dir", "import")
	refused(3, "give --zookeeper", "export", "--log-dir", dir)
	refused(3, "is not valid; allowed: host:port", "export", "--log-dir", dir, "--zookeeper", ":1")
	refused(1, "no ZooKeeper answers at 127.0.0.1:1", "export", "--log-dir", dir, "--zookeeper", "127.0.0.1:1", "--timeout", "300ms")
	refused(7, "has no meta.properties", "import", "--zookeeper", addr, "--log-dir", t.TempDir())

	c := dial(t, addr)
	with := func(path, data string, flag int32, check func()) {
		t.Helper()
		old, _, err := c.Get(path)
		there := err == nil
		if there {
			put(t, c, path, []byte(data))
		} else if _, err := c.Create(path, []byte(data), flag, everybody); err != nil {
			t.Fatal(path, err)
		}
		check()
		if there {
			put(t, c, path, old)
		} else if err := c.Delete(path, -1); err != nil {
			t.Fatal(err)
		}
	}
	both := func(status int, text string) func() {
		return func() { t.Helper(); refused(status, text, over...); refused(status, text, give...) }
	}
	with("/brokers/ids/7", `{"listener_security_protocol_map":{"A":"PLAINTEXT"},"endpoints":["A://h:9"],"jmx_port":-1,"host":"h","timestamp":"1","port":9,"version":5}`,
		zk.FlagEphemeral, both(1, "broker 7 (h:9) is still registered"))
	with("/controller", `{"version":2,"brokerid":7,"timestamp":"1","kraftControllerEpoch":-1}`, zk.FlagEphemeral, both(1, "a controller is still registered"))
	with("/migration", `{}`, 0, both(7, "begun to move to KRaft"))
	with("/cluster/id", `{"version":"1","id":"other"}`, 0, both(7, "it has cluster other"))
	with("/controller_epoch", "99", 0, func() { refused(7, "only ZooKeeper "+addr+" was used: kring store import", give...) })
	with("/controller_epoch", "0", 0, func() {
		refused(7, "both sides were used since the last hand-over", bring...)
		refused(7, "both sides were used since the last hand-over", give...)
	})
	with("/admin/reassign_partitions", `{"version":1,"partitions":[]}`, 0, func() { refused(7, "a reassignment", over...) })
	with("/brokers/topics/words", `{"partitions":{"0":[1,2]},"topic_id":"iekmJcKISeKODFsrmS3i7A","adding_replicas":{},"removing_replicas":{},"version":3}`, 0,
		func() { refused(7, "the replicas of words-0 are on brokers [1 2]", over...) })
	with("/brokers/topics/words", `{"partitions":{"0":[2]},"topic_id":"iekmJcKISeKODFsrmS3i7A","adding_replicas":{},"removing_replicas":{},"version":3}`, 0,
		func() { refused(7, "the replicas of words-0 are on brokers [2]", over...) })
	if _, err := c.SetACL("/config/users", zk.DigestACL(zk.PermAll, "u", "p"), -1); err != nil {
		t.Fatal(err)
	}
	both(1, "/config/users is protected by an ACL")()

	other := t.TempDir()
	meta, err := os.ReadFile(dir + "/meta.properties")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other+"/meta.properties", []byte(strings.Replace(string(meta), "broker.id=1", "broker.id=2", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	refused(7, "says broker 1 of cluster", append(over, "--log-dir", other)...)
	kept, err := os.ReadDir(other)
	if err != nil || len(kept) != 1 {
		t.Errorf("%v %v", kept, err)
	}
}

// TestStoreWaits for the session of a killed broker, and says as JSON what it did.
func TestStoreWaits(t *testing.T) {
	needsPeers(t)
	addr, dir := startZooKeeper(t), t.TempDir()+"/data"
	startLone(t, dir).stop(t)
	flags := []string{"--zookeeper", addr, "--log-dir", dir}
	storeDone(t, append([]string{"export", "--create"}, flags...)...)
	c := dial(t, addr)
	if _, err := c.Create("/brokers/ids/1", nil, zk.FlagEphemeral, everybody); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(stage.Kring(t), append([]string{"store", "import", "--replace", "--wait", "60s", "--json"}, flags...)...)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		t.Fatalf("it did not wait: %v\n%s", err, out.String())
	case <-time.After(500 * time.Millisecond):
	}
	if err := c.Delete("/brokers/ids/1", -1); err != nil {
		t.Fatal(err)
	}
	var got handed
	if err := <-ended; err != nil || json.Unmarshal([]byte(out.String()), &got) != nil || !got.Replaced {
		t.Errorf("%v\n%s", err, out.String())
	}
}

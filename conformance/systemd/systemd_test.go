package systemd

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// deb is the package as make builds it.
func deb(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	target := t.TempDir()
	cmd := exec.Command("make", "-s", "package", "PACKAGE_DIR="+target+"/")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make package: %v\n%s", err, out)
	}
	made, err := filepath.Glob(target + "/*.deb")
	if err != nil || len(made) != 1 {
		t.Fatalf("%v %v", made, err)
	}
	return made[0]
}

// TestService is the life of the installed service, in order: each part leaves it running for the next.
func TestService(t *testing.T) {
	file := deb(t)
	b := newBox(t)
	b.copy(file, "/root/kring.deb")
	for _, part := range []struct {
		name string
		run  func(*testing.T, *box)
	}{
		{"package installs and starts the service", installs},
		{"unit is right and tight", unit},
		{"hardening is in force and io_uring works", hardened},
		{"journal has the priorities", priorities},
		{"reload takes what may change", reloads},
		{"killed broker is back with its records", killed},
		{"start waits until the broker serves", waits},
		{"start gets the time it needs", extended},
		{"frozen process is started anew", frozen},
		{"stuck loop is found and started anew", stuck},
		{"kernel that refuses io_uring is named, once", refused},
		{"stop is clean", stops},
		{"removal leaves the records", removed},
	} {
		if !t.Run(part.name, func(t *testing.T) {
			was := b.t
			b.t = t
			defer func() { b.t = was }()
			part.run(t, b)
		}) {
			t.Fatal("what follows builds on this")
		}
	}
}

func installs(t *testing.T, b *box) {
	if out := b.ok("dpkg", "-i", "/root/kring.deb"); strings.Contains(out, "warning") || strings.Contains(out, "Failed") {
		t.Errorf("%s", out)
	}
	if got := b.ok("systemctl", "is-active", "kring"); got != "active" {
		t.Error(got)
	}
	if got := b.ok("systemctl", "is-enabled", "kring"); got != "enabled" {
		t.Error(got)
	}
	if got := b.show("StatusText"); got != "serves PLAINTEXT://127.0.0.1:9092" {
		t.Errorf("status %q", got)
	}
	if got := b.ok("stat", "-c", "%U %a", "/var/lib/kring"); got != "kring 750" {
		t.Errorf("the state directory belongs to %s", got)
	}
	b.kring("", "topics", "create", "words", "-p", "3")
	b.kring("one\ntwo\n", "produce", "words")
	if got := b.kring("", "consume", "words", "--from-beginning", "--exit"); got != "one\ntwo\n" {
		t.Errorf("%q", got)
	}
	if got := b.get("/health"); !strings.HasPrefix(got.out, "HTTP/1.0 200") {
		t.Errorf("%+v", got)
	}
}

// exposureMost is ten times what systemd-analyze may score the unit with.
const exposureMost = "15"

func unit(t *testing.T, b *box) {
	if r := b.run("systemd-analyze", "verify", "kring.service"); r.out != "" || r.status != 0 {
		t.Errorf("status %d: %s", r.status, r.out)
	}
	if r := b.run("systemd-analyze", "security", "--threshold="+exposureMost, "kring.service"); r.status != 0 {
		t.Errorf("%s", r.out)
	}
}

func hardened(t *testing.T, b *box) {
	here, there := b.process()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", here))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"NoNewPrivs:\t1\n", "Seccomp:\t2\n", "CapEff:\t0000000000000000\n", "CapBnd:\t0000000000000000\n"} {
		if !strings.Contains(string(status), want) {
			t.Errorf("not %q:\n%s", want, status)
		}
	}
	if got := b.ok("ps", "-o", "user=", "-p", fmt.Sprint(there)); got != "kring" {
		t.Errorf("runs as %s", got)
	}
	inside := func(args ...string) result {
		return b.run(append([]string{"nsenter", "-t", fmt.Sprint(there), "-m", "--"}, args...)...)
	}
	for _, name := range []string{"/etc/x", "/usr/x", "/var/x", "/home/x"} {
		if r := inside("touch", name); !strings.Contains(r.out, "Read-only file system") && !strings.Contains(r.out, "No such file") {
			t.Errorf("touch %s in the broker's view: %+v", name, r)
		}
	}
	if r := inside("touch", "/var/lib/kring/x"); r.status != 0 {
		t.Errorf("the state directory cannot be written: %s", r.out)
	}
	inside("rm", "/var/lib/kring/x")
	if rings, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", here)); err != nil || !has(rings, "anon_inode:[io_uring]") {
		t.Errorf("no ring is open (%v)", err)
	}
	if n := b.show("LimitNOFILE"); n == "1024" {
		t.Errorf("LimitNOFILE %s", n)
	}
}

func has(links []string, target string) bool {
	for _, l := range links {
		if to, _ := os.Readlink(l); to == target {
			return true
		}
	}
	return false
}

func priorities(t *testing.T, b *box) {
	since := b.now()
	b.kring("", "topics", "create", "idle", "-c", "compression.type=gzip")
	want := map[string]string{"topic created topic=idle": "6", "topic setting does not act yet": "4"}
	b.eventually("both lines", func() bool {
		seen := 0
		for line := range strings.Lines(b.said(since, "-o", "json")) {
			var entry struct{ MESSAGE, PRIORITY string }
			if json.Unmarshal([]byte(line), &entry) != nil {
				continue
			}
			for text, priority := range want {
				if strings.HasPrefix(entry.MESSAGE, text) && entry.PRIORITY == priority {
					seen++
				}
			}
		}
		return seen == len(want)
	})
	if out := b.said(""); strings.Contains(out, "<6>") || strings.Contains(out, "INFO ") {
		t.Errorf("prefixes or levels are left in the lines:\n%s", out)
	}
}

func reloads(t *testing.T, b *box) {
	since := b.now()
	_, before := b.process()
	text, err := os.ReadFile(b.path("/etc/kring/server.properties"))
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), "kring.log.level=info", "kring.log.level=debug", 1)
	b.write("/etc/kring/server.properties", strings.Replace(changed, "num.partitions=1", "num.partitions=2", 1))
	b.ok("systemctl", "reload", "kring")
	b.eventually("the reload", func() bool {
		out := b.said(since)
		return strings.Contains(out, "settings read again changed=kring.log.level") &&
			strings.Contains(out, "setting has changed and waits for a restart key=num.partitions") && b.show("ActiveState") == "active"
	})
	since = b.now()
	b.write("/etc/kring/server.properties", "num.partitions=none\n")
	b.ok("systemctl", "reload", "kring")
	b.eventually("the refusal", func() bool { return strings.Contains(b.said(since), "settings stay as they are error=") })
	b.write("/etc/kring/server.properties", string(text))
	if _, after := b.process(); after != before {
		t.Error("the reload has restarted the broker")
	}
}

func killed(t *testing.T, b *box) {
	_, before := b.process()
	b.ok("systemctl", "kill", "-s", "KILL", "kring")
	back(b, before)
	if got := b.kring("", "consume", "words", "--from-beginning", "--exit"); got != "one\ntwo\n" {
		t.Errorf("%q", got)
	}
}

// back waits until another process serves.
func back(b *box, before int) {
	b.t.Helper()
	b.eventually("another start", func() bool {
		now := "\n" + b.ok("systemctl", "show", "-p", "ActiveState", "-p", "MainPID", "kring.service") + "\n"
		return strings.Contains(now, "\nActiveState=active\n") &&
			!strings.Contains(now, "\nMainPID=0\n") && !strings.Contains(now, fmt.Sprintf("\nMainPID=%d\n", before))
	})
	b.kring("", "topics", "list")
}

// waits lets the broker recover so many logs that it takes a while, and looks at what systemd says meanwhile.
func waits(t *testing.T, b *box) {
	for i := range 4 {
		b.kring("", "topics", "create", fmt.Sprint("many-", i), "-p", "1000")
	}
	b.dropIn(t, "Restart=no")
	recovering := false
	for try := 0; !recovering && try < 5; try++ { // it may be over between two looks
		recovering = b.recovers(t)
	}
	if !recovering {
		t.Error("the status has not told of the recovery")
	}
	b.kring("", "topics", "list") // at once
	for i := range 4 {
		b.kring("", "topics", "delete", fmt.Sprint("many-", i))
	}
}

// recovers kills the broker, starts it, and says whether its status was seen to tell of the recovery before it served.
func (b *box) recovers(t *testing.T) (recovering bool) {
	b.ok("systemctl", "kill", "-s", "KILL", "kring")
	b.eventually("the end", func() bool { return b.show("ActiveState") == "failed" })
	b.ok("systemctl", "reset-failed", "kring")
	b.ok("systemctl", "start", "--no-block", "kring")
	b.eventually("the start", func() bool {
		b.run("systemctl", "kill", "-s", "STOP", "kring") // it is over too soon to be looked at while it goes on
		now := b.ok("systemctl", "show", "-p", "ActiveState", "-p", "StatusText", "kring.service") + "\n"
		b.run("systemctl", "kill", "-s", "CONT", "kring")
		if strings.Contains(now, "ActiveState=activating") {
			recovering = recovering || strings.Contains(now, "StatusText=recovering logs: ")
			if strings.Contains(now, "StatusText=serves") {
				t.Error("it serves, and is activating all the same")
			}
		}
		return strings.HasPrefix(now, "ActiveState=active\n") || strings.Contains(now, "\nActiveState=active\n")
	})
	return recovering
}

// extended lets a recovery take longer than TimeoutStartSec, by holding the process still for most of the time: since it gets on whenever it
// may, it asks for more time, and gets it.
func extended(t *testing.T, b *box) {
	for i := range 4 {
		b.kring("", "topics", "create", fmt.Sprint("slow-", i), "-p", "1000")
	}
	b.dropIn(t, "Restart=no\nTimeoutStartSec=7s")
	b.ok("systemctl", "kill", "-s", "KILL", "kring")
	b.eventually("the end", func() bool { return b.show("ActiveState") == "failed" })
	b.ok("systemctl", "reset-failed", "kring")
	begun := time.Now()
	b.ok("systemctl", "start", "--no-block", "kring")
	signal := func(name string) { b.run("systemctl", "kill", "-s", name, "kring") }
	b.eventually("the recovery", func() bool {
		signal("STOP")
		now := b.ok("systemctl", "show", "-p", "ActiveState", "-p", "StatusText", "kring.service")
		if strings.Contains(now, "ActiveState=active\n") {
			t.Fatal("the start is over too soon to be looked at")
		}
		if strings.Contains(now, "StatusText=recovering logs: ") {
			return true
		}
		signal("CONT")
		return false
	})
	for _, at := range []time.Duration{5400, 5800, 6200} { // it asks every five seconds
		time.Sleep(time.Until(begun.Add(at * time.Millisecond)))
		signal("CONT")
		signal("STOP")
	}
	time.Sleep(time.Until(begun.Add(9 * time.Second)))
	if got := b.show("ActiveState"); got != "activating" {
		t.Errorf("after nine seconds the service is %s", got)
	}
	signal("CONT")
	b.eventually("the start", func() bool { return b.show("ActiveState") == "active" })
	b.kring("", "topics", "list")
	for i := range 4 {
		b.kring("", "topics", "delete", fmt.Sprint("slow-", i))
	}
}

func frozen(t *testing.T, b *box) {
	b.dropIn(t, "WatchdogSec=2s\nRestartSec=100ms")
	b.ok("systemctl", "restart", "kring")
	since := b.now()
	_, before := b.process()
	b.ok("systemctl", "kill", "-s", "STOP", "--kill-whom=main", "kring")
	back(b, before)
	if out := b.said(since); !strings.Contains(out, "Watchdog timeout") {
		t.Errorf("%s", out)
	}
}

// stuck stops the thread of one loop, and nothing else, as a system call that does not return would: ptrace can do that to any
// thread. The other threads, among them those that speak to systemd, go on.
func stuck(t *testing.T, b *box) {
	b.dropIn(t, "WatchdogSec=10s\nRestartSec=100ms") // time to ask what its HTTP port says
	b.ok("systemctl", "restart", "kring")
	since := b.now()
	here, before := b.process()
	thread := b.thread(here, "kring-loop-0")
	held, ended := make(chan error), make(chan error)
	go func() {
		runtime.LockOSThread() // ptrace is between threads
		held <- hold(thread)
		ended <- reap(thread)
	}()
	if err := <-held; err != nil {
		t.Fatal(err)
	}
	if got := b.get("/health"); !strings.HasPrefix(got.out, "HTTP/1.0 503") || !strings.Contains(got.out, "loops that do not turn: [0]") {
		t.Errorf("health: %+v", got)
	}
	if got := b.get("/metrics"); !strings.Contains(got.out, "kring_loop_turning{loop=\"0\"} 0\n") {
		t.Errorf("metrics: %.300s", got.out)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(patience):
		t.Fatal("nobody ends a broker with a stuck loop")
	}
	back(b, before)
	out := b.said(since)
	for _, want := range []string{"loops do not turn loops=[0]", "Watchdog timeout"} {
		if !strings.Contains(out, want) {
			t.Errorf("the journal has no %q:\n%s", want, out)
		}
	}
}

// hold stops a thread and returns when it stands still.
func hold(thread int) error {
	if err := unix.PtraceSeize(thread); err != nil {
		return fmt.Errorf("seize: %w", err)
	}
	if err := unix.PtraceInterrupt(thread); err != nil {
		return fmt.Errorf("interrupt: %w", err)
	}
	var status unix.WaitStatus
	_, err := unix.Wait4(thread, &status, unix.WALL, nil)
	return err
}

// reap waits until a thread that is held has died with its process.
func reap(thread int) error {
	for {
		var status unix.WaitStatus
		_, err := unix.Wait4(thread, &status, unix.WALL, nil)
		if err == unix.ECHILD || err == nil && (status.Exited() || status.Signaled()) {
			return nil
		}
		if err != nil && err != unix.EINTR {
			return err
		}
	}
}

func refused(t *testing.T, b *box) {
	b.ok("systemctl", "stop", "kring")
	b.dropIn(t, "SystemCallFilter=~@aio\nRestartSec=100ms")
	since := b.now()
	if r := b.run("systemctl", "start", "kring"); r.status == 0 {
		t.Error("the service starts without io_uring")
	}
	if status, restarts := b.show("ExecMainStatus"), b.show("NRestarts"); status != "8" || restarts != "0" {
		t.Errorf("exit status %s, %s restarts", status, restarts)
	}
	var own []string
	for line := range strings.Lines(b.said(since, "-p", "err", "-t", "kring")) {
		own = append(own, line)
	}
	if len(own) != 1 || !strings.HasPrefix(own[0], "kring: io_uring") || !strings.Contains(own[0], "seccomp") {
		t.Errorf("the journal's errors are not one line with cause and cure: %q of\n%s", own, b.said(since, "-o", "short"))
	}
	b.ok("systemctl", "reset-failed", "kring")
}

func stops(t *testing.T, b *box) {
	b.ok("systemctl", "start", "kring")
	since := b.now()
	b.ok("systemctl", "stop", "kring")
	if got := b.show("Result"); got != "success" {
		t.Errorf("%s: %s", got, b.said(since))
	}
	if _, err := os.Stat(b.path("/var/lib/kring/.kafka_cleanshutdown")); err != nil {
		t.Error(err)
	}
	if out := b.said(since); !strings.Contains(out, "broker stopped") {
		t.Errorf("the last line is lost:\n%s", out)
	}
	b.ok("systemctl", "start", "kring")
	if out := b.said(since); strings.Contains(out, "not clean") {
		t.Errorf("%s", out)
	}
}

func removed(t *testing.T, b *box) {
	b.ok("dpkg", "-r", "kring")
	if got := b.run("systemctl", "is-active", "kring"); got.status == 0 {
		t.Errorf("%+v", got)
	}
	b.ok("dpkg", "-i", "/root/kring.deb")
	if got := b.kring("", "consume", "words", "--from-beginning", "--exit"); got != "one\ntwo\n" {
		t.Errorf("%q", got)
	}
	b.ok("dpkg", "--purge", "kring")
	if _, err := os.Stat(b.path("/etc/kring/server.properties")); !os.IsNotExist(err) {
		t.Errorf("a purge leaves the settings (%v)", err)
	}
	if _, err := os.Stat(b.path("/var/lib/kring/words-0")); err != nil {
		t.Errorf("a purge takes the records away: %v", err)
	}
}

package main

import (
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// refusal is a start that must not happen.
type refusal struct {
	name     string
	prepare  func(t *testing.T, dir string)
	file     string // contents of a server.properties, if any
	settings []string
	env      string
	status   int
	want     string // in the line
}

func write(name, text string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func folder(name string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

var refusals = []refusal{
	{name: "value out of range", settings: []string{"num.partitions=0"}, status: exitArguments,
		want: "num.partitions=0 is not valid; allowed: at least 1"},
	{name: "value of the wrong type", file: "log.retention.ms=a week\n", status: exitArguments,
		want: "log.retention.ms=a week is not valid; allowed: a whole number"},
	{name: "broken escape", file: "a=1\nb=\\u00\n", status: exitArguments, want: "line 3: "},
	{name: "override without a value", settings: []string{"num.partitions"}, status: exitArguments, want: "--override=num.partitions is not valid; allowed: key=value"},
	{name: "override without a key", settings: []string{"=1"}, status: exitArguments, want: "--override"},
	{name: "KRaft", file: "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@localhost:9093\n" +
		"controller.listener.names=CONTROLLER\n", status: exitUnsupported, want: "process.roles=broker,controller is not supported: KRaft"},
	{name: "ZooKeeper", settings: []string{"zookeeper.connect=localhost:2181"}, status: exitUnsupported, want: "zookeeper.connect"},
	{name: "TLS", file: "listeners=SSL://localhost:9093\nsecurity.inter.broker.protocol=SSL\n", status: exitUnsupported, want: "speaks SSL"},
	{name: "access control", settings: []string{"authorizer.class.name=kafka.security.authorizer.AclAuthorizer"}, status: exitUnsupported,
		want: "authorizer.class.name"},
	{name: "address of another machine", settings: []string{"listeners=PLAINTEXT://192.0.2.1:19092"}, status: exitAddress,
		want: "192.0.2.1:19092: bind: cannot assign requested address; set listeners to an address of this machine"},
	{name: "host that is none", settings: []string{"listeners=PLAINTEXT://no-such-host.invalid:19092"}, status: exitAddress, want: "no-such-host.invalid"},
	{name: "foreign directory", prepare: folder("data/lost+found"), status: exitData, want: "lost+found"},
	{name: "log dir is a file", prepare: write("data", "text"), status: exitData, want: "data"},
	{name: "log dir cannot be made", settings: []string{"log.dirs=/proc/kring"}, status: exitData, want: "log dir /proc/kring cannot be made: "},
	{name: "log dir of a cluster without its store", prepare: write("data/meta.properties", "version=0\nbroker.id=5\n"+
		"cluster.id=AAAAAAAAAAAAAAAAAAAAAA\n"), status: exitData, want: "whose store, kring-store-*, is in no log dir: if another log dir was the first, put that first"},
	{name: "KRaft's log dir", prepare: write("data/meta.properties", "version=1\nnode.id=5\ncluster.id=AAAAAAAAAAAAAAAAAAAAAA\n"),
		status: exitData, want: "meta.properties"},
	{name: "broken meta.properties", prepare: write("data/meta.properties", "broker.id=many\n"), status: exitData, want: "meta.properties"},
	{name: "preemption off", env: "GODEBUG=asyncpreemptoff=1", status: exitKernel, want: "asyncpreemptoff=1"},
	{name: "io_uring forbidden", env: withoutRing + "=1", status: exitKernel, want: "io_uring"},
}

func TestRefusalsSayWhyAndTouchNothing(t *testing.T) {
	for _, r := range refusals {
		t.Run(r.name, func(t *testing.T) { r.check(t) })
	}
	t.Run("port in use", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		refusal{settings: []string{"listeners=PLAINTEXT://" + l.Addr().String()}, status: exitAddress,
			want: l.Addr().String() + ": bind: address already in use; stop what listens there (ss -ltnp names it) or set listeners\n"}.check(t)
	})
}

func (r refusal) check(t *testing.T) {
	dir := t.TempDir()
	if r.prepare != nil {
		r.prepare(t, dir)
	}
	args := []string{"broker"}
	if r.file != "" {
		write("server.properties", "log.dirs=data\n"+r.file)(t, dir)
		args = append(args, "server.properties")
	}
	defaults := []string{"log.dirs=data"}
	if !strings.Contains(r.file, "listeners") {
		defaults = append(defaults, "listeners=PLAINTEXT://127.0.0.1:0")
	}
	for _, s := range append(defaults, r.settings...) {
		args = append(args, "--override", s)
	}
	before := tree(t, dir)
	got := runIn(t, dir, r.env, args...)
	r.judge(t, got)
	if after := tree(t, dir); !maps.Equal(before, after) {
		t.Errorf("the disk has changed:\nbefore %v\nafter %v", before, after)
	}
}

func (r refusal) judge(t *testing.T, got result) {
	t.Helper()
	if got.status != r.status {
		t.Errorf("status %d, want %d", got.status, r.status)
	}
	var own []string
	for line := range strings.Lines(got.errOut) {
		if strings.HasPrefix(line, "kring: ") {
			own = append(own, line)
		} else if !strings.Contains(line, " INFO  ") {
			t.Errorf("more than the one line: %s", line)
		}
	}
	if len(own) != 1 || !strings.Contains(own[0], r.want) {
		t.Errorf("%q, want one line with %q", own, r.want)
	}
	if got.out != "" {
		t.Errorf("on standard output: %s", got.out)
	}
}

func runIn(t *testing.T, dir, env string, args ...string) result {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), env)
	if strings.HasPrefix(env, withoutRing) {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Path, cmd.Env = self, append(cmd.Env, withoutRing+"="+program)
	}
	cmd.Dir = dir
	return finish(t, cmd, "")
}

func TestLogDirInUseIsRefused(t *testing.T) {
	b := start(t, t.TempDir()+"/data")
	before := tree(t, b.data)
	refusal{settings: []string{"log.dirs=" + b.data}, status: exitLocked, want: b.data}.check(t)
	if after := tree(t, b.data); !maps.Equal(before, after) {
		t.Errorf("the disk has changed:\nbefore %v\nafter %v", before, after)
	}
	b.kring("", "topics", "list").ok(t)
}

func TestOtherBrokerIDIsRefused(t *testing.T) {
	b := start(t, t.TempDir()+"/data", "broker.id=5")
	b.kring("", "topics", "create", "kept").ok(t)
	b.end(syscall.SIGTERM)
	before := tree(t, b.data)
	refusal{settings: []string{"log.dirs=" + b.data, "broker.id=6"}, status: exitData, want: "broker.id"}.check(t)
	after := tree(t, b.data)
	for name := range before {
		if strings.HasSuffix(name, ".kafka_cleanshutdown") && before[name] != after[name] {
			t.Errorf("the clean stop is forgotten: %s", after[name])
		}
	}
	b.args = append(b.args[:len(b.args)-1], "broker.id=5")
	b.run()
	if out := b.kring("", "topics", "list").ok(t); !strings.Contains(out, "kept") {
		t.Errorf("%s", out)
	}
}

// TestLogDirLockedAsKafkaLocksIsRefused takes the lock as java.nio does: fcntl's, on the whole of .lock.
func TestLogDirLockedAsKafkaLocksIsRefused(t *testing.T) {
	data := t.TempDir()
	f, err := os.Create(filepath.Join(data, ".lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
		t.Fatal(err)
	}
	name, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	self := fmt.Sprintf("%d, %s", os.Getpid(), strings.TrimSpace(string(name)))
	refusal{settings: []string{"log.dirs=" + data}, status: exitLocked, want: "log dir " + data + " cannot be locked: lock " + data +
		"/.lock: another process uses the directory, Kring or Kafka (process " + self + "); stop it first, or choose another directory\n"}.check(t)
	repair := kring(t, "", "log", "repair", data)
	if want := "Kafka (process " + self + "); stop it first\n"; repair.status != exitLocked || !strings.HasSuffix(repair.errOut, want) {
		t.Errorf("repair: status %d: %s, want %s", repair.status, repair.errOut, want)
	}
}

func TestUnknownKeyWarnsOnce(t *testing.T) {
	b := start(t, t.TempDir()+"/data", "no.such.key=1", "delegation.token.max.lifetime.ms=2", "num.io.threads=8")
	said := b.said.String()
	for key, n := range map[string]int{"key=no.such.key": 1, "key=delegation.token.max.lifetime.ms": 1, "num.io.threads": 0} {
		if got := strings.Count(said, key); got != n {
			t.Errorf("%s is named %d times, want %d:\n%s", key, got, n, said)
		}
	}
}

func TestWrongArgumentsHaveTheirStatus(t *testing.T) {
	for _, args := range []string{"nonsense", "topics nonsense", "broker a b", "broker --nonsense", "topics create", "consume", "produce",
		"topics alter x", "consume x -o yesterday", "produce x --acks 5", "produce x -z rar", "log dump", "broker --override kring.log.level=loud",
		"broker /no/such/file", "probe /no/such/file", "bench nonsense", "topics create x -c novalue", "topics list -b host:x", "topics list -b :9092",
		"produce x -b host:0", "groups nonsense", "groups delete", "groups reset-offsets --to-latest", "groups list x"} {
		if r := kring(t, "", strings.Fields(args)...); r.status != exitArguments || strings.Count(r.errOut, "\n") != 1 {
			t.Errorf("kring %s: status %d, %s", args, r.status, r.errOut)
		}
	}
}

func TestNoBrokerIsNamedWithWhereToLook(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	for _, args := range []string{"topics list", "topics describe x", "consume x", "produce x --timeout 1s", "bench idle",
		"groups list", "groups describe x", "groups describe", "groups delete x", "groups reset-offsets x --all-topics --to-latest",
		"consume x --group g"} {
		r := kring(t, "x\n", append(strings.Fields(args), "-b", l.Addr().String())...)
		want := "kring: no broker answers at " + l.Addr().String() + ": connection refused; --bootstrap-server says where to look\n"
		if r.status != exitFailed || !strings.HasSuffix(r.errOut, want) {
			t.Errorf("kring %s: status %d, %q, want %q", args, r.status, r.errOut, want)
		}
	}
}

func TestArgumentsThatLackAreNamed(t *testing.T) {
	for args, want := range map[string]string{
		"produce":                               "kring produce takes TOPIC [FILE...], not 0 arguments; see kring produce --help",
		"broker a b":                            "kring broker takes [server.properties], not 2 arguments; see kring broker --help",
		"topics list a":                         "kring topics list takes no arguments, not 1 argument; see kring topics list --help",
		"topics --nope":                         "unknown flag: --nope; see kring topics --help",
		"topics create x -p y":                  `invalid argument "y" for "-p, --partitions" flag; allowed: a whole number`,
		"stats --interval y":                    `invalid argument "y" for "--interval" flag; allowed: a time such as 500ms, 10s or 1m`,
		"consume x --offset 5 --from-beginning": "give one of --offset and --from-beginning",
		"help nope":                             `there is no command "nope"; kring --help lists them`,
		"topics nope":                           `there is no command "topics nope"; kring topics --help lists them`,
	} {
		if r := kring(t, "", strings.Fields(args)...); r.errOut != "kring: "+want+"\n" {
			t.Errorf("kring %s: %q, want %q", args, r.errOut, want)
		}
	}
}

// withoutRing names, in the environment of this test's own binary, the program to become after io_uring_setup was forbidden.
const withoutRing = "KRING_TEST_WITHOUT_RING"

// execWithoutRing forbids io_uring_setup as container runtimes do, by a seccomp filter that answers EPERM, and becomes the program.
func execWithoutRing() {
	runtime.LockOSThread()
	const load, equal, ret, allow = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K,
		unix.BPF_RET | unix.BPF_K, unix.SECCOMP_RET_ALLOW
	filter := []unix.SockFilter{
		{Code: load},
		{Code: equal, Jf: 1, K: unix.SYS_IO_URING_SETUP},
		{Code: ret, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: ret, K: allow},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if err == nil {
		err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
	}
	if err == nil {
		name := os.Getenv(withoutRing)
		os.Unsetenv(withoutRing)
		err = syscall.Exec(name, os.Args, os.Environ())
	}
	fmt.Fprintln(os.Stderr, "forbidding io_uring:", err)
	os.Exit(1)
}

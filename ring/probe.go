package ring

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	kernelMajor, kernelMinor = 6, 1

	fullFlags = setupSubmitAll | setupSingleIssuer | setupDeferTaskrun
	lessFlags = setupSubmitAll | setupCoopTaskrun
)

// needed are the operations without which a loop does not run.
var needed = []struct {
	op   uint8
	name string
}{
	{opRecv, "recv"}, {opSend, "send"}, {opSendmsg, "sendmsg"}, {opAccept, "accept"}, {opPollAdd, "poll"}, {opAsyncCancel, "cancel"},
	{opRead, "read"}, {opWrite, "write"}, {opWritev, "writev"}, {opFsync, "fsync"}, {opOpenat, "open"}, {opFallocate, "fallocate"},
	{opRenameat, "rename"}, {opUnlinkat, "unlink"}, {opMkdirat, "mkdir"},
}

var neededFeatures = []struct {
	bit  uint32
	name string
}{
	{featSingleMmap, "SINGLE_MMAP"}, {featNodrop, "NODROP"}, {featSubmitStable, "SUBMIT_STABLE"},
	{featFastPoll, "FAST_POLL"}, {featExtArg, "EXT_ARG"},
}

func (k *Kernel) found(what, state string, ok bool, cure string) {
	k.findings = append(k.findings, Finding{what, state, ok, cure})
}

// kernelVersion is the running kernel's.
func kernelVersion() (major, minor int, release string) {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return 0, 0, "unknown"
	}
	release = unix.ByteSliceToString(u.Release[:])
	parts := strings.SplitN(release, ".", 3)
	major, _ = strconv.Atoi(parts[0])
	if len(parts) > 1 {
		minor, _ = strconv.Atoi(strings.TrimRightFunc(parts[1], func(r rune) bool { return r < '0' || r > '9' }))
	}
	return major, minor, release
}

// Probe looks at what the kernel and the dirs give without making loops; the error is a *Refused if a Kernel could not be made.
func Probe(o Options) ([]Finding, error) {
	k := &Kernel{dirs: o.Dirs, paths: map[string]writePath{}, log: o.Log}
	err := preemptible()
	if e := k.examine(o.WritePath); err == nil {
		err = e
	}
	return k.findings, err
}

// examine finds out what there is and decides the paths.
func (k *Kernel) examine(writePath string) error {
	k.dirs = cleanDirs(k.dirs)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	major, minor, release := kernelVersion()
	old := major < kernelMajor || major == kernelMajor && minor < kernelMinor
	if old {
		k.found("kernel", release, false, "run Linux 6.1 or later")
		return &Refused{What: "kernel " + release, Cause: "older than 6.1", Cure: "run Linux 6.1 or later"}
	}
	k.found("kernel", release, true, "")
	r, err := k.firstRing()
	if err != nil {
		return err
	}
	defer r.close()
	if err := k.examineRing(r); err != nil {
		return err
	}
	if err := k.choosePaths(writePath); err != nil {
		return err
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		few := limit.Cur < 4096
		k.found("descriptors", strconv.FormatUint(limit.Cur, 10), !few, choice(few, "raise LimitNOFILE", ""))
	}
	return nil
}

// firstRing makes a ring with the best flags the kernel takes.
func (k *Kernel) firstRing() (*uring, error) {
	k.ringFlags = fullFlags
	r, err := openURing(ringEntries, ringCompletions, fullFlags)
	if errors.Is(err, unix.EINVAL) {
		k.ringFlags = lessFlags
		if r, err = openURing(ringEntries, ringCompletions, lessFlags); err == nil {
			if k.log != nil {
				k.log.Warn("io_uring without SINGLE_ISSUER and DEFER_TASKRUN: the kernel refuses them; each completion costs more")
			}
			k.found("ring", "COOP_TASKRUN", true, "the kernel refuses SINGLE_ISSUER and DEFER_TASKRUN; run an unpatched 6.1 or later")
			return r, nil
		}
	}
	if err != nil {
		refused := refusedSetup(err)
		k.found("io_uring", refused.Cause, false, refused.Cure)
		return nil, refused
	}
	k.found("ring", "SINGLE_ISSUER, DEFER_TASKRUN", true, "")
	return r, nil
}

// refusedSetup names cause and cure of a refused io_uring_setup.
func refusedSetup(err error) *Refused {
	r := &Refused{What: "io_uring", Cause: err.Error(), Err: err, Cure: "see io_uring_setup(2)"}
	switch {
	case errors.Is(err, unix.EPERM):
		b, _ := os.ReadFile("/proc/sys/kernel/io_uring_disabled")
		if s := strings.TrimSpace(string(b)); s != "" && s != "0" {
			r.Cause, r.Cure = "the sysctl kernel.io_uring_disabled is "+s, "set kernel.io_uring_disabled=0"
		} else {
			r.Cause, r.Cure = "a seccomp filter or security module forbids it (EPERM)",
				"allow io_uring_setup, io_uring_enter and io_uring_register (Docker: --security-opt seccomp=unconfined or a profile with them)"
		}
	case errors.Is(err, unix.ENOSYS):
		r.Cause, r.Cure = "the kernel has it not, or a seccomp filter hides it (ENOSYS)",
			"run a kernel with CONFIG_IO_URING, or allow it in the filter"
	case errors.Is(err, unix.ENOMEM):
		r.Cause, r.Cure = "memory may not be locked (ENOMEM)", "raise LimitMEMLOCK (systemd: LimitMEMLOCK=infinity)"
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		r.Cause, r.Cure = "no descriptor is left", "raise LimitNOFILE"
	}
	return r
}

func (k *Kernel) examineRing(r *uring) error {
	for _, f := range neededFeatures {
		if r.features&f.bit == 0 {
			k.found("feature "+f.name, "no", false, "run Linux 6.1 or later")
			return &Refused{What: "io_uring feature " + f.name, Cause: "the kernel has it not", Cure: "run Linux 6.1 or later"}
		}
	}
	ops := r.supports()
	for _, o := range needed {
		if !ops[o.op] {
			k.found("op "+o.name, "no", false, "run Linux 6.1 or later")
			return &Refused{What: "io_uring operation " + o.name, Cause: "the kernel has it not", Cure: "run Linux 6.1 or later"}
		}
	}
	k.found("operations", fmt.Sprintf("all %d", len(needed)), true, "")
	k.found("receive", "multishot into provided buffers; large frames straight into their own", true, "")
	k.found("send", "ring; ranges over 16 KiB by sendfile", true, "")
	k.found("file ranges in memory", choice(hasCachestat(), "cachestat", "sampled by RWF_NOWAIT"), true, "")
	k.found("truncate", choice(ops[opFtruncate], "ring", "helper"), true, "")
	k.found("sync", "ring", true, "")
	return nil
}

func choice(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}

func hasCachestat() bool {
	_, _, e := unix.RawSyscall6(unix.SYS_CACHESTAT, ^uintptr(0), 0, 0, 0, 0, 0)
	return e != unix.ENOSYS && e != unix.EPERM
}

// choosePaths decides how writes reach each log dir.
func (k *Kernel) choosePaths(path string) error {
	switch path {
	case "ring", "pwrite":
		if path == "ring" {
			k.otherPath = byRing
		}
		for _, d := range k.dirs {
			k.paths[d] = k.otherPath
			k.found("write path "+d, path+", as configured", true, "")
		}
	case "auto", "":
		for _, d := range k.dirs {
			inline, tried, err := tryRingWrites(d, k.ringFlags)
			if err != nil {
				k.found("write path "+d, "pwrite, since the probe failed: "+err.Error(), false, "make the directory writable")
				continue
			}
			how := "pwrite"
			if inline >= tried*9/10 {
				k.paths[d], how = byEither, "pwrite without waiting, else ring"
			}
			k.found("write path "+d, fmt.Sprintf("%s: the kernel completed %d of %d ring writes at once", how, inline, tried), true, "")
		}
	default:
		return &Refused{What: "write path " + strconv.Quote(path), Cause: "there is none of that name", Cure: "auto, ring or pwrite"}
	}
	return nil
}

package ring

import (
	"bytes"
	"compress/gzip"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const verdict = "RING-VERDICT "

// TestOnAnotherKernel boots the kernel image that KRING_KERNEL names in an emulated machine and runs this room's tests there, as
// its init. It needs qemu-system-x86_64 and the go command.
func TestOnAnotherKernel(t *testing.T) {
	image := os.Getenv("KRING_KERNEL")
	if image == "" {
		t.Skip("KRING_KERNEL names no kernel image")
	}
	dir := t.TempDir()
	init := filepath.Join(dir, "init")
	build := exec.Command("go", "test", "-c", "-o", init, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	program, err := os.ReadFile(init)
	if err != nil {
		t.Fatal(err)
	}
	initrd := filepath.Join(dir, "initrd.gz")
	if err := os.WriteFile(initrd, initramfs(program), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	qemu := exec.CommandContext(ctx, "qemu-system-x86_64", "-machine", "q35,accel=tcg", "-cpu", "max", "-m", "1024", "-smp", "2",
		"-nographic", "-no-reboot", "-kernel", image, "-initrd", initrd, "-append", "console=ttyS0 quiet panic=-1 RING_RUN="+os.Getenv("RING_RUN"))
	var log bytes.Buffer
	qemu.Stdout, qemu.Stderr = io.MultiWriter(&log, t.Output()), t.Output()
	if err := qemu.Run(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), verdict+"0") {
		t.Error("the tests did not pass on ", image)
	}
}

// initramfs is a cpio archive in the new ASCII format: /init and the directories it mounts on.
func initramfs(program []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	pos, ino := 0, 0
	put := func(b []byte) {
		z.Write(b)
		pos += len(b)
		z.Write(make([]byte, -pos&3))
		pos = (pos + 3) &^ 3
	}
	entry := func(name string, mode int, content []byte) {
		ino++
		put(fmt.Appendf(nil, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00",
			ino, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name)+1, 0, name))
		put(content)
	}
	for _, d := range []string{"proc", "sys", "dev", "tmp"} {
		entry(d, 0o040755, nil)
	}
	entry("init", 0o100755, program)
	entry("TRAILER!!!", 0, nil)
	z.Close()
	return out.Bytes()
}

// bootedTests is what this binary does as the first process of a machine: it runs the tests and switches the machine off.
func bootedTests(m *testing.M) {
	for _, fs := range [][2]string{{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/tmp"}} {
		if err := unix.Mount(fs[0], fs[1], fs[0], 0, ""); err != nil {
			fmt.Println("mount", fs[1], err)
		}
	}
	if err := loopbackUp(); err != nil {
		fmt.Println("lo:", err)
	}
	unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 20000, Max: 20000})
	os.Setenv("PATH", "/")
	_, _, release := kernelVersion()
	fmt.Println("kernel", release)
	flag.Parse()
	for k, v := range map[string]string{"test.v": "true", "test.short": "true", "test.timeout": "12m", "test.run": os.Getenv("RING_RUN")} {
		flag.Set(k, v)
	}
	patience = 4 * time.Minute
	checkTurns = true
	code := m.Run()
	fmt.Println(verdict + fmt.Sprint(code))
	unix.Sync()
	unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}

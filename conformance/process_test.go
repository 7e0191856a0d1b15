package conformance

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// status is a number of /proc/PID/status: kB or a count.
func (b *broker) status(key string) int64 {
	b.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.cmd.Process.Pid))
	if err != nil {
		b.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, key+":"); ok {
			n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				b.t.Fatal(err)
			}
			return n
		}
	}
	b.t.Fatalf("/proc/PID/status has no %s", key)
	return 0
}

// sockets is how many descriptors of the process are connections or listeners.
func (b *broker) sockets() int {
	b.t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd/", b.cmd.Process.Pid)
	list, err := os.ReadDir(dir)
	if err != nil {
		b.t.Fatal(err)
	}
	n := 0
	for _, e := range list {
		if to, err := os.Readlink(dir + e.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

// processor is the time the process has computed.
func (b *broker) processor() time.Duration {
	b.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", b.cmd.Process.Pid))
	if err != nil {
		b.t.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	var ticks int64
	for _, f := range fields[11:13] { // user and system time, in hundredths
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			b.t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// usage is what the kernel has charged to a set of processes since they began (proc(5)).
type usage struct {
	// cpu is exact run time, summed over the living threads (schedstat).
	cpu time.Duration
	// user and system are sampled by the tick (stat): good for a share, not for a sum.
	user, system time.Duration
	// resident and peak are bytes of memory now and at most.
	resident, peak int64
}

// clockTick is USER_HZ, which Linux fixes at 100 for what it shows in /proc.
const clockTick = 10 * time.Millisecond

func account(pids []int) (usage, error) {
	var all usage
	for _, pid := range pids {
		u, err := accountOne("/proc/" + strconv.Itoa(pid))
		if err != nil {
			return usage{}, fmt.Errorf("bench: process %d: %w", pid, err)
		}
		all.cpu += u.cpu
		all.user += u.user
		all.system += u.system
		all.resident += u.resident
		all.peak += u.peak
	}
	return all, nil
}

// CPUTime is what a process and its threads, ended ones too, have had of processors, in ticks of 10 ms.
func CPUTime(pid int) (time.Duration, error) {
	u, err := accountOne("/proc/" + strconv.Itoa(pid))
	return u.user + u.system, err
}

func accountOne(dir string) (u usage, err error) {
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return u, err
	}
	// The command's name, in parentheses, may hold anything: fields are counted after it, state being the third.
	f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(f) < 13 {
		return u, fmt.Errorf("%s/stat has %d fields", dir, len(f))
	}
	u.user = time.Duration(number(f[11])) * clockTick
	u.system = time.Duration(number(f[12])) * clockTick
	tasks, err := os.ReadDir(dir + "/task")
	if err != nil {
		return u, err
	}
	for _, t := range tasks {
		// A thread may end between the listing and the reading.
		if b, err := os.ReadFile(dir + "/task/" + t.Name() + "/schedstat"); err == nil {
			if f := bytes.Fields(b); len(f) > 0 {
				u.cpu += time.Duration(number(f[0]))
			}
		}
	}
	if u.cpu == 0 {
		u.cpu = u.user + u.system
	}
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return u, err
	}
	for line := range bytes.Lines(status) {
		f := bytes.Fields(line)
		if len(f) < 2 {
			continue
		}
		switch string(f[0]) {
		case "VmRSS:":
			u.resident = number(f[1]) << 10
		case "VmHWM:":
			u.peak = number(f[1]) << 10
		}
	}
	return u, nil
}

func number(b []byte) int64 {
	n, _ := strconv.ParseInt(string(b), 10, 64)
	return n
}

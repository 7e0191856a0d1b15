package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// ticks is the unit of times in /proc; it is 100 for every program.
const ticks = 100

// threadTime is the processor time of one of this process' threads in seconds.
func threadTime(id int) (float64, bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/stat", id))
	if err != nil {
		return 0, false
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, false
	}
	user, err := strconv.ParseUint(string(fields[11]), 10, 64)
	if err != nil {
		return 0, false
	}
	system, err := strconv.ParseUint(string(fields[12]), 10, 64)
	return float64(user+system) / ticks, err == nil
}

// kernelWorkers counts the threads that the kernel runs for the process' rings.
func kernelWorkers() int {
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return 0
	}
	n := 0
	for _, e := range entries {
		if name, err := os.ReadFile("/proc/self/task/" + e.Name() + "/comm"); err == nil && bytes.HasPrefix(name, []byte("iou-wrk")) {
			n++
		}
	}
	return n
}

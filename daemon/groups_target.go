package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// target is where offsets are to be reset to: one of these.
type target struct {
	earliest, latest, current bool
	datetime, duration        string
	to, by                    int64
	file                      string

	chosen string
	milli  int64 // of datetime and duration, else -1
}

var targets = []string{"to-earliest", "to-latest", "to-current", "to-datetime", "by-duration", "to-offset", "shift-by", "from-file"}

func (g *target) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&g.earliest, "to-earliest", false, "to the first record there is")
	f.BoolVar(&g.latest, "to-latest", false, "to the end: only what comes is read")
	f.BoolVar(&g.current, "to-current", false, "to the committed offset, or the end where there is none")
	f.StringVar(&g.datetime, "to-datetime", "", "to the first record since this `time`: RFC 3339 (UTC without a zone), or Unix ms")
	f.StringVar(&g.duration, "by-duration", "", "to the first record since this `long` ago: 36h, 2d, or P1DT12H")
	f.Int64Var(&g.to, "to-offset", 0, "to this `offset`")
	f.Int64Var(&g.by, "shift-by", 0, "forward by so many records from the committed offset, or back if negative")
	f.StringVar(&g.file, "from-file", "", "to what topic,partition,offset lines of this `file` say")
}

// check finds which one was given and reads it.
func (g *target) check(cmd *cobra.Command) error {
	for _, name := range targets {
		if !cmd.Flags().Changed(name) {
			continue
		}
		if g.chosen != "" {
			return wrong("give one of --%s and --%s", g.chosen, name)
		}
		g.chosen = name
	}
	g.milli = -1
	switch g.chosen {
	case "":
		return wrong("say where to reset to: one of --%s", strings.Join(targets, ", --"))
	case "to-datetime":
		at, ok := parseTime(g.datetime)
		if !ok {
			return wrong("--to-datetime %s is not valid; allowed: 2026-01-31T12:00:00Z, or Unix ms", g.datetime)
		}
		g.milli = at
	case "by-duration":
		long, ok := parseDuration(g.duration)
		if !ok {
			return wrong("--by-duration %s is not valid; allowed: such as 90m, 36h, 2d, or P1DT12H", g.duration)
		}
		g.milli = time.Now().Add(-long).UnixMilli()
	case "to-offset":
		if g.to < 0 {
			return wrong("--to-offset %d is not valid; allowed: 0 and more", g.to)
		}
	}
	return nil
}

// at is the time asked for in Unix ms, -1 if none is.
func (g *target) at() int64 { return g.milli }

// offset is what a partition is to get; it may lie outside of it.
func (g *target) offset(b bounds, committed *int64, asked map[string]map[int32]int64) (int64, error) {
	switch g.chosen {
	case "to-earliest":
		return b.start, nil
	case "to-current":
		if committed != nil {
			return *committed, nil
		}
	case "to-datetime", "by-duration":
		if b.atMilli >= 0 {
			return b.atMilli, nil
		}
	case "to-offset":
		return g.to, nil
	case "shift-by":
		if committed == nil {
			return 0, fmt.Errorf("%s-%d has no committed offset to shift; --topic %s:0,1,... or --all-topics leave it out",
				b.topic, b.partition, b.topic)
		}
		return *committed + g.by, nil
	case "from-file":
		return asked[b.topic][b.partition], nil
	}
	return b.end, nil
}

// times without a zone are UTC, as Kafka's tools take them.
var timeLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04", "2006-01-02"}

// parseTime reads a time as Unix ms.
func parseTime(s string) (int64, bool) {
	if ms, err := strconv.ParseInt(s, 10, 64); err == nil && ms >= 0 {
		return ms, true
	}
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, s); err == nil && t.UnixMilli() >= 0 {
			return t.UnixMilli(), true
		}
	}
	return 0, false
}

var isoDuration = regexp.MustCompile(`^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$`)

// parseDuration reads Go's form, whole days, or ISO 8601 as Kafka's tools take it.
func parseDuration(s string) (time.Duration, bool) {
	if d, err := time.ParseDuration(s); err == nil {
		return d, d >= 0
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 32)
		return time.Duration(n) * 24 * time.Hour, err == nil && n >= 0
	}
	m := isoDuration.FindStringSubmatch(s)
	if m == nil || s == "P" || strings.HasSuffix(s, "T") {
		return 0, false
	}
	total := 0.0
	for i, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second} {
		if n, err := strconv.ParseFloat(m[i+1], 64); err == nil {
			total += n * float64(unit)
		}
	}
	return time.Duration(total), total < float64(1<<62)
}

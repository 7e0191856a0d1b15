package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// lagsShown is how many groups are listed for people.
const lagsShown = 10

// print shows it to people.
func (s *stats) print(out io.Writer) {
	up := time.Duration(s.Uptime) * time.Second
	switch {
	case s.Broker != nil:
		fmt.Fprintf(out, "broker %d of cluster %s, %s for %s\n", *s.Broker, s.Cluster, s.State, up)
	case s.Start != nil:
		fmt.Fprintf(out, "broker %s for %s, %s\n", s.State, up, s.Start.text())
	default:
		fmt.Fprintf(out, "broker %s for %s\n", s.State, up)
	}
	p := s.Process
	fmt.Fprintf(out, "process   %.2f cores, %s resident, %s heap, %.0f of %.0f descriptors\n", p.CPU, bytesText(p.Resident), bytesText(p.Heap),
		p.Files, p.FilesMax)
	if s.Broker == nil { // before it serves there is nothing else to show
		return
	}
	line := func(name string, parts []string) { fmt.Fprintf(out, "%-9s %s\n", name, strings.Join(parts, ", ")) }
	var traffic []string
	for _, r := range s.Traffic {
		traffic = append(traffic, s.counted(r))
	}
	line("traffic", traffic)
	line("logs", gaugeTexts(s.Logs))
	if s.NoRoom != nil {
		fmt.Fprintf(out, "%-9s no room in %s; %s offline until there is\n", "degraded", count(int64(s.NoRoom.LogDirs), "log dir"),
			count(int64(s.NoRoom.Partitions), "partition"))
	}
	line("groups", gaugeTexts(s.Groups))
	line("cleaner", gaugeTexts(s.Cleaner))
	var closed []string
	for _, r := range s.Closed {
		closed = append(closed, fmt.Sprintf("%s %s", number(r.Total), strings.ReplaceAll(r.Name, "_", " ")))
	}
	if closed != nil {
		line("closed", closed)
	}
	s.printAPIs(out)
	s.printLoops(out)
	s.printLags(out)
}

func (s *stats) printAPIs(out io.Writer) {
	if len(s.APIs) == 0 {
		return
	}
	fmt.Fprintln(out)
	w := newTable(out, "api", "requests", "per s", "p50", "p99", "in", "out", "errors")
	right(w, 2, 3, 4, 5, 6, 7)
	for _, a := range s.APIs {
		var errs []string
		for _, e := range a.Errors {
			errs = append(errs, number(e.Total)+" "+e.Name)
		}
		w.AppendRow(table.Row{a.API, number(a.Requests), s.perSecond(a.Rate), duration(a.P50), duration(a.P99), bytesText(a.RequestBytes),
			bytesText(a.ResponseBytes), strings.Join(errs, ", ")})
	}
	w.Render()
}

func (s *stats) printLoops(out io.Writer) {
	if len(s.Loops) == 0 {
		return
	}
	of := func(r rate) string { return number(r.Total) }
	head := "since the start"
	if s.old != nil {
		of, head = func(r rate) string { return s.perSecond(r.Rate) }, "per second"
	}
	fmt.Fprintf(out, "\n%s:\n", head)
	w := newTable(out, "loop", "turns", "enters", "submissions", "completions", "hand-offs", "writes", "by ring", "slow", "no buffers",
		"cpu", "connections", "in flight", "buffers")
	right(w, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14)
	for _, l := range s.Loops {
		name := l.Loop
		if !l.Turning {
			name += " (stuck)"
		}
		writes := rate{Total: l.CallWrites.Total + l.RingWrites.Total, Rate: l.CallWrites.Rate + l.RingWrites.Rate}
		w.AppendRow(table.Row{name, of(l.Turns), of(l.Enters), of(l.Submissions), of(l.Completions), of(l.HandOffs), of(writes),
			of(l.RingWrites), of(l.SlowWrites), of(l.NoBuffers), fmt.Sprintf("%.0f %%", 100*l.CPU), number(l.Connections),
			number(l.InFlight), bytesText(l.Buffers)})
	}
	w.Render()
}

func (s *stats) printLags(out io.Writer) {
	if len(s.Lags) == 0 {
		return
	}
	fmt.Fprintln(out)
	w := newTable(out, "group", "partitions", "lag", "largest")
	right(w, 2, 3, 4)
	for _, l := range s.Lags[:min(len(s.Lags), lagsShown)] {
		w.AppendRow(table.Row{l.Group, l.Partitions, number(l.Lag), number(l.MaxLag)})
	}
	w.Render()
	if more := len(s.Lags) - lagsShown; more > 0 {
		fmt.Fprintf(out, "and %s; --json has all\n", count(int64(more), "more group"))
	}
}

// counted is a counter in words; bytes by name.
func (s *stats) counted(r rate) string {
	show := number
	if strings.HasPrefix(r.Name, "bytes") {
		show = bytesText
	}
	if s.old == nil {
		return fmt.Sprintf("%s %s", show(r.Total), nounFor(r.Total, r.Name))
	}
	return fmt.Sprintf("%s %s (%s/s)", show(r.Total), nounFor(r.Total, r.Name), show(r.Rate))
}

// perSecond is a rate, and nothing where none was watched.
func (s *stats) perSecond(r float64) string {
	switch {
	case s.old == nil:
		return ""
	case r > 0 && r < 10:
		return strconv.FormatFloat(r, 'f', 1, 64)
	}
	return number(r)
}

func gaugeTexts(all []gauge) []string {
	var texts []string
	for _, g := range all {
		if name, bytes := strings.CutSuffix(g.Name, "bytes"); bytes {
			texts = append(texts, strings.TrimSpace(bytesText(g.Value)+" "+name))
		} else {
			texts = append(texts, number(g.Value)+" "+nounFor(g.Value, g.Name))
		}
	}
	return texts
}

// ones are the names of what is counted, where there is one of it.
var ones = map[string]string{"partitions": "partition", "uncleanable partitions": "uncleanable partition", "segments": "segment",
	"open files": "open file", "cleanings": "cleaning", "offsets": "offset", "rebalances": "rebalance", "commits": "commit",
	"messages in": "message in"}

func nounFor(n float64, name string) string {
	if one := ones[name]; one != "" && number(n) == "1" {
		return one
	}
	return name
}

// number groups the digits of a whole number.
func number(f float64) string {
	digits := strconv.FormatFloat(math.Round(f), 'f', -1, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func bytesText(f float64) string {
	for _, unit := range []string{"B", "KiB", "MiB", "GiB"} {
		if f < 1024 {
			if unit == "B" || f >= 100 {
				return fmt.Sprintf("%.0f %s", f, unit)
			}
			return fmt.Sprintf("%.1f %s", f, unit)
		}
		f /= 1024
	}
	return fmt.Sprintf("%.1f TiB", f)
}

// duration is an estimate, to two digits.
func duration(seconds float64) string {
	switch {
	case seconds == 0:
		return ""
	case seconds < 1e-3:
		return fmt.Sprintf("%.0f us", seconds*1e6)
	case seconds < 1:
		return fmt.Sprintf("%.1f ms", seconds*1e3)
	}
	return fmt.Sprintf("%.1f s", seconds)
}

// right puts columns of numbers to the right.
func right(w table.Writer, columns ...int) {
	var configs []table.ColumnConfig
	for _, c := range columns {
		configs = append(configs, table.ColumnConfig{Number: c, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	w.SetColumnConfigs(configs)
}

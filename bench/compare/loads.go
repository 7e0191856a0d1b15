package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"kring/bench"
)

// load is one row of the comparison: how to run it, and which figures tell.
type load struct {
	name, what string
	set        func(*bench.Options)
	run        func(context.Context, bench.Options) (*bench.Report, error)
	figures    []figure
	keep       bool // leave the last round's topic for the next load
	reads      bool // reads what the load before it left
	restarts   bool // is run, and then the broker is restarted and timed until it has all offsets
}

type figure struct {
	name string
	of   func(*bench.Report) float64
}

var (
	cpuPerM  = figure{"CPU-s per million", func(r *bench.Report) float64 { return r.CPUPerM }}
	cpuPerGB = figure{"CPU-s per GB", func(r *bench.Report) float64 { return r.CPUPerGB }}
	perSec   = figure{"requests/s", func(r *bench.Report) float64 { return r.PerSecond }}
	mbPerSec = figure{"MB/s", func(r *bench.Report) float64 { return r.MBPerSec }}
	p50      = figure{"p50 ms", func(r *bench.Report) float64 { return r.Ack.P50 }}
	p99      = figure{"p99 ms", func(r *bench.Report) float64 { return r.Ack.P99 }}
	p999     = figure{"p99.9 ms", func(r *bench.Report) float64 { return r.Ack.P999 }}
	e50      = figure{"end to end p50 ms", func(r *bench.Report) float64 { return r.EndToEnd.P50 }}
	e99      = figure{"end to end p99 ms", func(r *bench.Report) float64 { return r.EndToEnd.P99 }}
	e999     = figure{"end to end p99.9 ms", func(r *bench.Report) float64 { return r.EndToEnd.P999 }}
	seconds  = figure{"seconds", func(r *bench.Report) float64 { return r.Seconds }}
	cores    = figure{"cores", func(r *bench.Report) float64 { return r.Cores }}
	offsets  = figure{"offsets/s", func(r *bench.Report) float64 { return r.OffsetsPerSec }}
	topicMB  = figure{"offsets topic MB", func(r *bench.Report) float64 { return r.OffsetsMB }}
	resident = figure{"peak resident MB", func(r *bench.Report) float64 { return r.PeakMB }}
	left     = figure{"left MB", func(r *bench.Report) float64 { return r.LeftMB }}
)

var loads = []load{
	{"requests", "1-record 1 KiB requests, 50 connections, closed loop", func(o *bench.Options) {}, bench.Produce,
		[]figure{cpuPerM, perSec, p50, p99, p999, resident}, false, false, false},
	{"rate", "the same at 5,000 requests/s", func(o *bench.Options) { o.Rate = 5000 }, bench.Produce,
		[]figure{cpuPerM, p50, p99, p999, resident}, false, false, false},
	{"tail", "2,000 records/s end to end, 12 producers, 6 long-polling readers",
		func(o *bench.Options) { o.Rate, o.Conns = 2000, 12 }, bench.Tail,
		[]figure{cpuPerM, e50, e99, e999, p99, p999, resident}, false, false, false},
	{"batches", "128 KiB batches, acks 1, 6 connections, 6 partitions", func(o *bench.Options) { o.Conns, o.Records = 6, 127 }, bench.Produce,
		[]figure{cpuPerGB, mbPerSec, p99, resident}, true, false, false},
	{"consume", "consuming those from the page cache, 6 readers", func(o *bench.Options) { o.Readers = 6 }, bench.Consume,
		[]figure{cpuPerGB, mbPerSec, p99, resident}, false, true, false},
	{"wide", "1,000 connections on 1,000 partitions, 1-record 1 KiB requests",
		func(o *bench.Options) { o.Conns, o.Partitions = 1000, 1000 }, bench.Produce,
		[]figure{cpuPerM, perSec, p99, resident}, false, false, false},
	{"settle", "1,000 consumers in 100 groups join at once", func(o *bench.Options) { o.Groups, o.Members = 100, 10 }, bench.Settle,
		[]figure{seconds, cpuPerM, resident}, false, false, false},
	{"heartbeats", "10,000 groups of one member, 100,000 heartbeats a minute, a connection for each",
		func(o *bench.Options) {
			o.Groups, o.Members, o.Rate, o.Duration = 10000, 1, 100000./60, max(o.Duration, 30*time.Second)
		}, bench.Heartbeats,
		[]figure{cpuPerM, cores, p50, p99, resident}, false, false, false},
	{"commits", "10 million commits, 10 partitions in a request, 16 connections, 100 groups", commits(10_000_000, 100, 10), bench.Commits,
		[]figure{cpuPerM, offsets, topicMB, p99, resident}, false, false, false},
	{"replay", "a million offsets of 10,000 groups, and a restart: from exec to the last group's offsets",
		commits(1_000_000, 10000, 100), bench.Commits, []figure{seconds, resident}, false, false, true},
	compaction("compact", "none"), compaction("compact-lz4", "lz4"),
	flush("flush", "each to a partition of its own", 16), flush("flush-one", "to one partition", 1),
	codec("gzip"), codec("snappy"), codec("lz4"), codec("zstd"),
}

// commits sets a load that commits count offsets.
func commits(count int64, groups, partitions int) func(*bench.Options) {
	return func(o *bench.Options) {
		o.Groups, o.Members, o.Conns, o.Records, o.Partitions, o.Count = groups, 1, 16, partitions, partitions, count
		o.Clean = 20 * time.Second // Kafka's cleaner looks every 15
	}
}

// compaction times the cleaning of one partition.
func compaction(name, codec string) load {
	return load{name, "the cleaning of one partition, -gb GB of 1 KiB values, each key ten times, compression " + codec,
		func(o *bench.Options) { o.Conns, o.Records, o.Keys, o.Codec = 2, 100, int(o.Bytes/10240)+1, codec }, bench.Compact,
		[]figure{seconds, mbPerSec, cpuPerGB, resident, left}, false, false, false}
}

// flush has the broker sync every batch before it answers.
func flush(name, where string, partitions int) load {
	return load{name, "flush.messages=1: 16 KiB batches of 16 producers, one under way each, " + where,
		func(o *bench.Options) {
			o.Conns, o.Records, o.Partitions, o.Config = 16, 15, partitions, map[string]string{"flush.messages": "1"}
		}, bench.Produce, []figure{perSec, p50, p99, p999, cpuPerM, resident}, false, false, false}
}

func codec(name string) load {
	return load{name, "the batches compressed with " + name + " (bytes are those before compression)",
		func(o *bench.Options) { o.Conns, o.Records, o.Codec = 6, 127, name }, bench.Produce,
		[]figure{cpuPerGB, mbPerSec, p99, resident}, false, false, false}
}

func choose(list string) ([]load, error) {
	if list == "" {
		return loads, nil
	}
	var out []load
	for _, n := range strings.Split(list, ",") {
		i := slices.IndexFunc(loads, func(l load) bool { return l.name == n })
		if i < 0 {
			return nil, fmt.Errorf("no load %q: choose from %s", n, names())
		}
		out = append(out, loads[i])
	}
	return out, nil
}

func (l load) compare(ctx context.Context, s settings, sides []*side) error {
	got := make([][]*bench.Report, len(sides))
	for round := range s.rounds {
		for i := range sides {
			k := (i + round) % len(sides) // who goes first changes
			b := sides[k]
			// A name of its own for each round: Kafka deletes a thousand partitions long after it says so.
			topic := fmt.Sprint(l.name, "-", round)
			if l.reads {
				topic = fmt.Sprint("batches-", s.rounds-1)
			}
			o := b.options(topic)
			o.Duration, o.Bytes, o.Checkpoint = s.time, int64(s.gb*1e9), b.data(s)+"/cleaner-offset-checkpoint"
			l.set(&o)
			fmt.Fprintf(os.Stderr, "%s: round %d, %s\n", l.name, round+1, b.name)
			r, err := l.run(ctx, o)
			if err == nil && l.restarts {
				r, err = b.restart(ctx, s, o)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", b.name, err)
			}
			if s.json {
				line, _ := json.Marshal(map[string]any{"load": l.name, "round": round + 1, "broker": b.name, "report": r})
				fmt.Println(string(line))
			}
			got[k] = append(got[k], r)
			if last := round == s.rounds-1; last && l.keep || l.reads && !last {
				continue
			}
			if err := o.Remove(); err != nil {
				return err
			}
			settle()
		}
	}
	l.print(got)
	return nil
}

// settle gives deleted files a moment to go, so that their write-back is not charged to the next load.
func settle() { time.Sleep(1500 * time.Millisecond) }

func (l load) print(got [][]*bench.Report) {
	fmt.Printf("\n%s: %s\n", l.name, l.what)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tkring\tspread\tkafka\tspread\tratio\tspread\t")
	for _, f := range l.figures {
		var a, b, ratio []float64
		for i := range got[0] {
			x, y := f.of(got[0][i]), f.of(got[1][i])
			a, b, ratio = append(a, x), append(b, y), append(ratio, x/y)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%.2f\t%.2f-%.2f\t\n", f.name, short(median(a)), spread(a), short(median(b)), spread(b),
			median(ratio), slices.Min(ratio), slices.Max(ratio))
	}
	w.Flush()
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

func spread(v []float64) string { return short(slices.Min(v)) + "-" + short(slices.Max(v)) }

func short(f float64) string {
	if f >= 100 {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.3g", f)
}

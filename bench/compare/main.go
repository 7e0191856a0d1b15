// Command compare runs the same loads on kring and on Apache Kafka 3.9 in turn, on one machine in one run, and prints
// the ratios: medians over the rounds, with their spread. Figures of one run may be compared with each other and with
// nothing else.
//
//	go run ./bench/compare -kring bin/kring -rounds 3 -time 10s -fill 0.85
//
// Both brokers are up all the time on data directories beside each other; only the one under load works. Before the first
// load, -fill writes one big file, so that the page cache holds that part of memory (memory which a guest has not touched
// lately costs many times more to fill), and Kafka's JVM is warmed with 2 GB of records.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"kring/bench"
)

type settings struct {
	kring, dir   string
	rounds       int
	time         time.Duration
	fill, gb     float64
	port         int
	loads        string
	kringArgs    string
	json, noWarm bool
}

func main() {
	var s settings
	flag.StringVar(&s.kring, "kring", "bin/kring", "the kring binary")
	flag.StringVar(&s.dir, "dir", "bench-data", "a directory for both brokers' data; it is emptied")
	flag.IntVar(&s.rounds, "rounds", 3, "alternations")
	flag.DurationVar(&s.time, "time", 10*time.Second, "measured time of each load")
	flag.Float64Var(&s.fill, "fill", 0, "part of memory to fill with page cache first (0.85 for figures to keep)")
	flag.Float64Var(&s.gb, "gb", 5, "GB (10^9) that loads compact and compact-lz4 have cleaned")
	flag.IntVar(&s.port, "port", 19092, "the first of three ports on 127.0.0.1 in a row: kring, Kafka, ZooKeeper")
	flag.StringVar(&s.loads, "loads", "", "only these, comma separated: "+names())
	flag.StringVar(&s.kringArgs, "kring-args", "", "more arguments for kring broker, e.g. '--override kring.loops=2'")
	flag.BoolVar(&s.json, "json", false, "print every report as a line of JSON too")
	flag.BoolVar(&s.noWarm, "no-warm", false, "skip warming the JVM (figures are then worthless; for trying the command)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := compare(ctx, s)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func compare(ctx context.Context, s settings) error {
	todo, err := choose(s.loads)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(s.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(s.dir)
	if err := fillCache(ctx, s.dir+"/fill", s.fill); err != nil {
		return err
	}
	sides := []*side{{name: "kring", port: s.port}, {name: "kafka", port: s.port + 1}}
	for _, b := range sides {
		defer b.stop()
		if err := b.start(ctx, s); err != nil {
			return fmt.Errorf("starting %s: %w", b.name, err)
		}
	}
	if !s.noWarm {
		if err := warm(ctx, sides); err != nil {
			return err
		}
	}
	fmt.Print(machine())
	for _, l := range todo {
		if err := l.compare(ctx, s, sides); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	return nil
}

// warm has each broker take some GB in large requests, give them back, and take small ones, alone and with readers.
func warm(ctx context.Context, sides []*side) error {
	for _, b := range sides {
		fmt.Fprintf(os.Stderr, "warming %s\n", b.name)
		large := b.options("warm")
		large.Conns, large.Records, large.Duration = 6, 127, 5*time.Second
		small := b.options("warm")
		small.Duration = 10 * time.Second
		tail := small
		tail.Rate, tail.Conns = 2000, 12
		for _, step := range []struct {
			run func(context.Context, bench.Options) (*bench.Report, error)
			o   bench.Options
		}{{bench.Produce, large}, {bench.Consume, large}, {bench.Produce, small}, {bench.Tail, tail}} {
			if _, err := step.run(ctx, step.o); err != nil {
				return fmt.Errorf("warming %s: %w", b.name, err)
			}
		}
		if err := large.Remove(); err != nil {
			return err
		}
	}
	return nil
}

func names() string {
	var n []string
	for _, l := range loads {
		n = append(n, l.name)
	}
	return strings.Join(n, ",")
}

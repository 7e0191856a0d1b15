// Command recovery times how kring and Apache Kafka 3.9 recover the same log dir after kill -9, in turn, on one machine in one run:
// warm page cache, the same number of recovery threads. Then it stops kring in order and times a clean start of it.
//
//	go run ./bench/recovery -kring bin/kring -gb 10 -partitions 1000
//	go run ./bench/recovery -kring bin/kring -gb 0 -partitions 5000     the clean start alone
//
// The dir is filled by kring. What a recovery changes, all but the batches themselves, is put back before the next one. Kring's time
// is from exec until it says that it serves; Kafka's, by its own log, the loading of logs alone, without the start of a JVM.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

type settings struct {
	kring, dir                string
	gb                        float64
	partitions, rounds, batch int
	threads, port             int
	kringArgs                 string
	leave                     bool
}

func main() {
	var s settings
	flag.StringVar(&s.kring, "kring", "bin/kring", "the kring binary")
	flag.StringVar(&s.dir, "dir", "bench-data", "a directory for the data; it is emptied")
	flag.Float64Var(&s.gb, "gb", 10, "GB (10^9) of batches; 0: no recovery")
	flag.IntVar(&s.partitions, "partitions", 1000, "partitions they lie in")
	flag.IntVar(&s.batch, "batch", 16, "records of 1 KiB in a batch")
	flag.IntVar(&s.rounds, "rounds", 3, "alternations")
	flag.IntVar(&s.threads, "threads", 1, "num.recovery.threads.per.data.dir")
	flag.IntVar(&s.port, "port", 19092, "the first of two ports on 127.0.0.1 in a row: the broker, ZooKeeper")
	flag.StringVar(&s.kringArgs, "kring-args", "", "more arguments for kring broker, e.g. '--override kring.loops=2'")
	flag.BoolVar(&s.leave, "leave", false, "leave the data there")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := s.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "recovery:", err)
		os.Exit(1)
	}
}

func (s *settings) run(ctx context.Context) error {
	if err := os.RemoveAll(s.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	if !s.leave {
		defer os.RemoveAll(s.dir)
	}
	d := dir{path: s.dir + "/data", kept: s.dir + "/kept"}
	if err := s.fill(ctx, d); err != nil {
		return err
	}
	if s.gb > 0 {
		if err := s.recoveries(ctx, d); err != nil {
			return err
		}
	}
	return s.cleanStarts(ctx)
}

// recoveries lets both recover the dir in turn.
func (s *settings) recoveries(ctx context.Context, d dir) error {
	if err := d.keep(); err != nil {
		return err
	}
	zk, err := s.zookeeper(ctx)
	if err != nil {
		return err
	}
	defer zk()
	times := map[string][]float64{}
	for round := range s.rounds {
		for _, b := range []struct {
			name    string
			recover func(context.Context) (result, error)
		}{{"kring", s.kringRecovers}, {"kafka", s.kafkaRecovers}} {
			if err := d.putBack(b.name == "kafka"); err != nil {
				return err
			}
			size, err := d.warm(ctx)
			if err != nil {
				return err
			}
			r, err := b.recover(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", b.name, err)
			}
			fmt.Printf("round %d: %s recovered %.2f GB in %.2f s, %.2f GB/s (%.2f s of CPU, start and end included)\n",
				round+1, b.name, float64(size)/1e9, r.seconds, float64(size)/1e9/r.seconds, r.cpu)
			times[b.name] = append(times[b.name], r.seconds)
		}
	}
	kring, kafka := median(times["kring"]), median(times["kafka"])
	fmt.Printf("recovery of %g GB in %d partitions, %d thread(s) a dir: kring %.2f s, Kafka %.2f s (medians): %.2f times as fast\n",
		s.gb, s.partitions, s.threads, kring, kafka, kafka/kring)
	return d.putBack(false)
}

// cleanStarts stops kring in order and starts it again, some times.
func (s *settings) cleanStarts(ctx context.Context) error {
	var times []float64
	b, _, err := s.startKring(ctx)
	for range s.rounds {
		if err != nil {
			return err
		}
		began := time.Now()
		b.stop(syscall.SIGTERM)
		fmt.Printf("kring: a stop with %d partitions takes %.2f s\n", s.partitions, time.Since(began).Seconds())
		began = time.Now()
		if b, _, err = s.startKring(ctx); err == nil {
			err = s.first(ctx)
		}
		times = append(times, time.Since(began).Seconds())
	}
	if err != nil {
		return err
	}
	b.stop(syscall.SIGTERM)
	fmt.Printf("a clean start with %d partitions, from exec to the first acknowledged record: %.2f s (median of %.2f)\n",
		s.partitions, median(times), times)
	return nil
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return x[len(x)/2]
}

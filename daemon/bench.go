package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kring/bench"
)

// load is a load of the bench room as a command.
type load struct {
	use, short, example string
	flags               string // those it takes besides the ones of all
	run                 func(context.Context, bench.Options) (*bench.Report, error)
}

var loads = []load{
	{"produce", "Produce as fast as answers come, or at a fixed rate",
		"kring bench produce --connections 50 --size 1024 --duration 10s",
		"topic partitions replication-factor config connections size records compression acks rate", bench.Produce},
	{"consume", "Read what the topic holds, again and again; produce fills it", "kring bench consume --readers 6",
		"topic partitions readers", bench.Consume},
	{"tail", "Produce at a rate while readers long-poll: latency from end to end",
		"kring bench tail --rate 2000 --readers 6",
		"topic partitions replication-factor config connections readers size records acks rate", bench.Tail},
	{"settle", "Have many consumers join their groups at once", "kring bench settle --groups 5 --members 4",
		"topic groups members", bench.Settle},
	{"heartbeats", "Keep many groups alive, at a rate", "kring bench heartbeats --groups 20 --members 1 --rate 100",
		"topic groups members rate", bench.Heartbeats},
	{"commits", "Commit offsets for many groups as fast as answers come", "kring bench commits --groups 10 --records 4 --count 100000",
		"topic partitions groups connections records count clean", bench.Commits},
	{"idle", "Hold connections that do nothing", "kring bench idle --connections 1000", "connections", bench.Idle},
}

func benchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Load a broker from outside and report requests, latency, CPU and memory",
		Args:  cobra.ArbitraryArgs,
		Example: `  kring bench produce --connections 50 --duration 10s --pid $(pgrep -d, -f 'kring broker')
  kring bench tail --rate 2000 --readers 6 --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return wrong("there is no load %q; kring bench --help lists them", args[0])
			}
			return cmd.Help()
		},
	}
	for _, l := range loads {
		cmd.AddCommand(benchLoad(l))
	}
	return cmd
}

func benchLoad(l load) *cobra.Command {
	var o bench.Options
	var acks string
	var settings []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:     l.use,
		Short:   l.short,
		Args:    exactly(0),
		Example: "  " + l.example,
		RunE: func(cmd *cobra.Command, _ []string) error {
			configs, err := keyValues(settings)
			if err != nil {
				return err
			}
			o.Config = map[string]string{}
			for k, v := range configs {
				o.Config[k] = *v
			}
			if acks == "all" {
				acks = "-1"
			}
			if o.Acks, err = strconv.Atoi(acks); err != nil {
				return wrong("--acks %s is not valid; allowed: 0, 1 or all", acks)
			}
			bar := progress(1000, l.use)
			o.Progress = func(done float64, what string) {
				bar.Describe(what)
				_ = bar.Set(int(done * 1000))
			}
			report, err := l.run(cmd.Context(), o)
			_ = bar.Finish()
			if err != nil {
				return &plainly{err}
			}
			if asJSON {
				return report.WriteJSON(cmd.OutOrStdout())
			}
			report.WriteText(cmd.OutOrStdout())
			return nil
		},
	}
	f := (&cobra.Command{}).Flags() // all there are
	f.StringVarP(&o.Addr, "bootstrap-server", "b", "localhost:9092", "the broker, `host:port`")
	f.StringVar(&o.Topic, "topic", "bench", "the topic; produce and tail make it if absent")
	f.IntVarP(&o.Partitions, "partitions", "p", 6, "partitions of the topic")
	f.IntVar(&o.Replicas, "replication-factor", 1, "replicas of each partition")
	f.StringArrayVarP(&settings, "config", "c", nil, "a setting of the topic, `key=value`")
	f.IntVar(&o.Conns, "connections", 1, "connections that produce, or are idle")
	f.IntVar(&o.Readers, "readers", 1, "consuming connections")
	f.IntVar(&o.Size, "size", 1024, "bytes of a record's value")
	f.IntVar(&o.Records, "records", 1, "records, or committed partitions, in a request")
	f.IntVar(&o.Groups, "groups", 10, "groups, named after the topic")
	f.IntVar(&o.Members, "members", 1, "members of each group, a connection each")
	f.Int64Var(&o.Count, "count", 0, "offsets to commit in all; 0: as many as the duration allows")
	f.DurationVar(&o.Clean, "clean", 0, "wait until the offsets topic has kept its size for so long")
	f.StringVarP(&o.Codec, "compression", "z", "none", "none, gzip, snappy, lz4 or zstd")
	f.StringVar(&acks, "acks", "1", "0, 1 or all")
	f.Float64Var(&o.Rate, "rate", 0, "requests per second in all; 0: as fast as answers come")
	f.DurationVar(&o.Warm, "warm-up", 2*time.Second, "time before measuring")
	f.DurationVar(&o.Duration, "duration", 10*time.Second, "time measured")
	f.IntSliceVar(&o.PIDs, "pid", nil, "the broker's process, to account its CPU and memory")
	f.BoolVar(&asJSON, "json", false, "the report as one JSON object")
	for _, name := range strings.Fields("bootstrap-server warm-up duration pid json " + l.flags) {
		cmd.Flags().AddFlag(f.Lookup(name))
	}
	return cmd
}

// plainly is an error of the bench room without the room's name.
type plainly struct{ err error }

func (p *plainly) Error() string { return strings.TrimPrefix(p.err.Error(), "bench: ") }
func (p *plainly) Unwrap() error { return p.err }

package main

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

type consuming struct {
	client
	partitions    []int32
	offset        string
	fromBeginning bool
	most          int64
	exit          bool
	asJSON        bool
	keys          string
	offsets       bool
	headers       bool
	delimiter     string
	committed     bool
	maxBytes      int32
	group         membership
}

func consumeCommand() *cobra.Command {
	c := &consuming{}
	cmd := &cobra.Command{
		Use:   "consume TOPIC",
		Short: "Print the records of a topic",
		Args:  exactly(1),
		Example: `  kring consume words --from-beginning --exit
  kring consume words -p 0 -o -10 --json
  kring consume words -o @2026-01-31T12:00:00Z -n 5 --keys : --headers
  kring consume words --group readers --from-beginning -v`,
		RunE: func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0]) },
	}
	c.flags(cmd)
	cmd.ValidArgsFunction = c.completeTopics(false)
	f := cmd.Flags()
	f.Int32SliceVarP(&c.partitions, "partition", "p", nil, "only these partitions, `0,1,...`")
	f.StringVarP(&c.offset, "offset", "o", "end",
		"where to begin: beginning, end, an offset (or the nearest), -N (N before the end), @TIME (RFC 3339 or Unix ms)")
	f.BoolVar(&c.fromBeginning, "from-beginning", false, "the same as --offset beginning")
	f.Int64VarP(&c.most, "count", "n", 0, "stop after so many records; 0: never")
	f.BoolVarP(&c.exit, "exit", "e", false, "stop at the end of what was there at the start")
	f.BoolVar(&c.asJSON, "json", false, "one JSON object for each record; bytes that are not UTF-8 as base64")
	f.StringVarP(&c.keys, "keys", "K", "", "print the key too, and this between key and value")
	f.BoolVar(&c.offsets, "offsets", false, "print partition, offset and time before each record")
	f.BoolVar(&c.headers, "headers", false, "print the headers before each record")
	f.StringVarP(&c.delimiter, "delimiter", "D", `\n`, "what to print after each record")
	f.BoolVar(&c.committed, "read-committed", false, "leave out what a transaction has not committed")
	f.Int32Var(&c.maxBytes, "fetch-max-bytes", 50<<20, "the most bytes asked for at once")
	completeFlag(cmd, "offset", "beginning", "end")
	c.group.flags(cmd, &c.client)
	return cmd
}

// goal is how far a partition is to be read; all is where it ends if what is not committed counts, 0 if nobody asked.
type goal struct{ next, end, all int64 }

func (c *consuming) run(cmd *cobra.Command, topic string) error {
	if c.fromBeginning {
		if cmd.Flags().Changed("offset") {
			return wrong("give one of --offset and --from-beginning")
		}
		c.offset = "beginning"
	}
	delimiter, err := unquote(c.delimiter)
	if err != nil {
		return wrong("--delimiter %q is not valid; allowed: bytes", c.delimiter)
	}
	keys, err := unquote(c.keys)
	if err != nil {
		return wrong("--keys %q is not valid; allowed: bytes", c.keys)
	}
	begin, err := parseOffset(c.offset)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(cmd.OutOrStdout(), 64<<10)
	p := &printer{out: out, json: c.asJSON, keys: keys, offsets: c.offsets, headers: c.headers, delimiter: delimiter}
	if c.group.name != "" {
		return c.join(cmd, topic, begin, p)
	}
	if err := c.group.unused(cmd); err != nil {
		return err
	}
	adm, err := c.admin()
	if err != nil {
		return err
	}
	goals, err := c.goals(cmd.Context(), adm, topic, begin)
	adm.Close()
	if err != nil {
		return err
	}
	for _, partition := range slices.Sorted(maps.Keys(goals)) {
		if from := goals[partition].next; begin.at > 0 && from != begin.at {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s-%d has no offset %d: reading from %d\n", topic, partition, begin.at, from)
		}
	}
	if c.exit && reached(goals) {
		sayOpen(cmd.ErrOrStderr(), topic, goals, everyPartition)
		return nil
	}
	cl, err := c.open(c.options(topic, goals)...)
	if err != nil {
		return err
	}
	defer cl.Close()
	return c.loop(cmd, cl, topic, goals, p)
}

func (c *consuming) options(topic string, goals map[int32]*goal) []kgo.Opt {
	from := map[int32]kgo.Offset{}
	for partition, g := range goals {
		from[partition] = kgo.NewOffset().At(g.next)
	}
	return append(c.fetching(), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}))
}

// fetching is how records are asked for.
func (c *consuming) fetching() []kgo.Opt {
	opts := []kgo.Opt{kgo.FetchMaxBytes(c.maxBytes), kgo.FetchMaxPartitionBytes(min(c.maxBytes, 8<<20)), kgo.FetchMaxWait(time.Second),
		kgo.KeepControlRecords()}
	if c.maxBytes > 100<<20 {
		opts = append(opts, kgo.BrokerMaxReadBytes(c.maxBytes+1<<20))
	}
	if c.committed {
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	return opts
}

// loop prints until the count or the end is reached, or the command is told to stop.
func (c *consuming) loop(cmd *cobra.Command, cl *kgo.Client, topic string, goals map[int32]*goal, p *printer) error {
	ctx := cmd.Context()
	bar := progress(total(goals, c), "reading")
	if !c.exit && c.most == 0 || terminal(os.Stdout) {
		bar = nil
	}
	for printed := int64(0); ; {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			return p.out.Flush()
		}
		for it := fetches.RecordIter(); !it.Done(); {
			r := it.Next()
			g := goals[r.Partition]
			g.next = r.Offset + 1
			if r.Attrs.IsControl() || c.exit && r.Offset >= g.end {
				continue
			}
			if err := p.print(r); err != nil {
				return err
			}
			if bar != nil {
				_ = bar.Add(1)
			}
			if printed++; c.most > 0 && printed >= c.most {
				return p.out.Flush()
			}
		}
		if err := p.out.Flush(); err != nil {
			return err
		}
		if c.exit && reached(goals) {
			if bar != nil {
				_ = bar.Finish()
			}
			sayOpen(cmd.ErrOrStderr(), topic, goals, everyPartition)
			return nil
		}
		for _, e := range fetches.Errors() { // behind what was read before them
			at := int64(0)
			if g := goals[e.Partition]; g != nil {
				at = g.next
			}
			return c.stopped(ctx, cl, topic, e.Partition, at, e.Err)
		}
	}
}

func reached(goals map[int32]*goal) bool {
	for _, g := range goals {
		if g.next < g.end {
			return false
		}
	}
	return true
}

func total(goals map[int32]*goal, c *consuming) int64 {
	n := int64(0)
	for _, g := range goals {
		n += max(0, g.end-g.next)
	}
	if c.most > 0 && (c.most < n || !c.exit) {
		return c.most
	}
	return n
}

// goals finds where each partition begins and ends.
func (c *consuming) goals(ctx context.Context, adm *kadm.Client, topic string, begin offsetSpec) (map[int32]*goal, error) {
	starts, err := adm.ListStartOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	ends, err := listEnds(ctx, adm, topic, c.committed)
	if err != nil {
		return nil, err
	}
	var all kadm.ListedOffsets
	if c.committed {
		if all, err = adm.ListEndOffsets(ctx, topic); err != nil {
			return nil, err
		}
	}
	var at kadm.ListedOffsets
	if begin.time >= 0 {
		if at, err = adm.ListOffsetsAfterMilli(ctx, begin.time, topic); err != nil {
			return nil, err
		}
	}
	goals := map[int32]*goal{}
	for partition, s := range starts[topic] {
		if len(c.partitions) > 0 && !slices.Contains(c.partitions, partition) {
			continue
		}
		end, _ := ends.Lookup(topic, partition)
		for _, e := range []error{s.Err, end.Err} {
			if e != nil {
				return nil, explain(topic, e, "")
			}
		}
		g := &goal{next: begin.from(s.Offset, end.Offset), end: end.Offset}
		if last, ok := all.Lookup(topic, partition); ok && last.Err == nil {
			g.all = last.Offset
		}
		if found, ok := at.Lookup(topic, partition); ok && begin.time >= 0 {
			g.next = found.Offset
		}
		goals[partition] = g
	}
	for _, p := range c.partitions {
		if goals[p] == nil {
			return nil, fmt.Errorf("%s has no partition %d", topic, p)
		}
	}
	if len(goals) == 0 {
		return nil, fmt.Errorf("%s: there is no such topic", topic)
	}
	return goals, nil
}

func listEnds(ctx context.Context, adm *kadm.Client, topic string, committed bool) (kadm.ListedOffsets, error) {
	if committed {
		return adm.ListCommittedOffsets(ctx, topic)
	}
	return adm.ListEndOffsets(ctx, topic)
}

// offsetSpec is a parsed --offset: a time, or back offsets from the end, or an offset.
type offsetSpec struct {
	time, back, at int64 // time and back: -1 if not meant
}

func parseOffset(s string) (offsetSpec, error) {
	o := offsetSpec{time: -1, back: -1}
	bad := wrong("--offset %s is not valid; allowed: beginning, end, an offset, -N, or @TIME as RFC 3339 or Unix ms", s)
	if t, ok := strings.CutPrefix(s, "@"); ok {
		if ms, err := strconv.ParseInt(t, 10, 64); err == nil && ms >= 0 {
			o.time = ms
		} else if when, err := time.Parse(time.RFC3339, t); err == nil && when.UnixMilli() >= 0 {
			o.time = when.UnixMilli()
		} else {
			return o, bad
		}
		return o, nil
	}
	switch s {
	case "beginning", "start":
		return o, nil
	case "end":
		o.back = 0
		return o, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return o, bad
	}
	if n < 0 {
		o.back = -n
	} else {
		o.at = n
	}
	return o, nil
}

// from is the offset within start and end that is meant.
func (o offsetSpec) from(start, end int64) int64 {
	if o.back >= 0 {
		return max(start, end-o.back)
	}
	return min(max(start, o.at), end)
}

package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
)

// resetting is the command line of reset-offsets.
type resetting struct {
	*client
	topics    []string
	allTopics bool
	execute   bool
	export    bool
	asJSON    bool
	target    target
}

// move is what is to become of one partition's committed offset.
type move struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Committed *int64 `json:"committed"` // null: none
	New       int64  `json:"new"`
	End       int64  `json:"end"`
	Executed  bool   `json:"executed"` // it is set, and not only shown
}

func resetOffsets(c *client) *cobra.Command {
	r := &resetting{client: c}
	cmd := &cobra.Command{
		Use:   "reset-offsets GROUP",
		Short: "Set a group's committed offsets; without --execute only show what would be set",
		Long: `Set the committed offsets of a group that has no members.

Say which partitions (--topic, --all-topics, or those a file names) and which offsets they get. Without --execute nothing is
changed. An offset outside of a partition becomes the nearest one inside.`,
		Args: exactly(1),
		Example: `  kring groups reset-offsets readers --topic words --to-earliest
  kring groups reset-offsets readers --topic words:0,1 --to-datetime 2026-01-31T12:00:00Z --execute
  kring groups reset-offsets readers --all-topics --shift-by -2 --execute
  kring groups reset-offsets readers --all-topics --to-current --export > offsets.csv
  kring groups reset-offsets readers --from-file offsets.csv --execute`,
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd, args[0]) },
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return c.completeGroups(cmd, args, text)
	}
	f := cmd.Flags()
	f.StringArrayVarP(&r.topics, "topic", "t", nil, "a `topic`, or topic:0,1,... for some of its partitions")
	f.BoolVar(&r.allTopics, "all-topics", false, "every partition the group has a committed offset of")
	f.BoolVar(&r.execute, "execute", false, "set the offsets")
	f.BoolVar(&r.export, "export", false, "print topic,partition,offset lines, as --from-file reads them")
	f.BoolVar(&r.asJSON, "json", false, "one JSON object for each partition")
	r.target.flags(cmd)
	return cmd
}

func (r *resetting) run(cmd *cobra.Command, group string) error {
	if err := r.target.check(cmd); err != nil {
		return err
	}
	scope, err := r.scope()
	if err != nil {
		return err
	}
	adm, err := r.admin()
	if err != nil {
		return err
	}
	defer adm.Close()
	g, err := r.describeOne(cmd, adm, group)
	if err != nil {
		return err
	}
	if g.State != "Empty" && g.State != "Dead" {
		return fmt.Errorf("%s is %s with %s: stop them, then its offsets can be reset", group, g.State, count(int64(len(g.Members)), "member"))
	}
	moves, err := r.plan(cmd, adm, group, scope)
	if err != nil {
		return err
	}
	if !r.execute {
		if err := r.show(cmd.OutOrStdout(), moves); err != nil {
			return err
		}
		fmt.Fprintln(cmd.ErrOrStderr(), "nothing is changed; --execute sets these offsets")
		return nil
	}
	failed := commit(cmd, adm, group, moves)
	return errors.Join(r.show(cmd.OutOrStdout(), moves), failed)
}

// scope are the partitions asked for: nil for those of a file or of every topic; no partitions for all of a topic.
func (r *resetting) scope() (map[string][]int32, error) {
	switch {
	case r.target.file != "" && (len(r.topics) > 0 || r.allTopics):
		return nil, wrong("--from-file names the partitions; leave out --topic and --all-topics")
	case r.target.file != "":
		return nil, nil
	case r.allTopics == (len(r.topics) > 0):
		return nil, wrong("give either --topic or --all-topics")
	case r.allTopics:
		return nil, nil
	}
	scope := map[string][]int32{}
	for _, s := range r.topics {
		topic, list, some := strings.Cut(s, ":")
		if topic == "" || some && list == "" {
			return nil, wrong("--topic %s is not valid; allowed: topic or topic:0,1,...", s)
		}
		scope[topic] = append(scope[topic], []int32{}...)
		for p := range strings.SplitSeq(list, ",") {
			n, err := strconv.ParseInt(p, 10, 32)
			if some && (err != nil || n < 0) {
				return nil, wrong("--topic %s is not valid; allowed: topic or topic:0,1,...", s)
			}
			if some && !slices.Contains(scope[topic], int32(n)) {
				scope[topic] = append(scope[topic], int32(n))
			}
		}
	}
	return scope, nil
}

// plan finds the partitions and what each of them gets.
func (r *resetting) plan(cmd *cobra.Command, adm *kadm.Client, group string, scope map[string][]int32) ([]move, error) {
	ctx := cmd.Context()
	committed, err := adm.FetchOffsets(ctx, group)
	if err != nil {
		return nil, explain(group, err, "")
	}
	asked := map[string]map[int32]int64{} // what the file says
	if r.target.file != "" {
		if asked, err = readOffsets(r.target.file, group); err != nil {
			return nil, err
		}
		scope = map[string][]int32{}
		for topic, parts := range asked {
			for p := range parts {
				scope[topic] = append(scope[topic], p)
			}
		}
	} else if r.allTopics {
		scope = map[string][]int32{}
		committed.Each(func(o kadm.OffsetResponse) {
			if o.Err == nil && o.At >= 0 {
				scope[o.Topic] = append(scope[o.Topic], o.Partition)
			}
		})
		if len(scope) == 0 {
			return nil, fmt.Errorf("%s has committed no offsets", group)
		}
	}
	l, err := listBounds(ctx, adm, scope, r.target.at())
	if err != nil {
		return nil, err
	}
	var moves []move
	for _, b := range l {
		m := move{Topic: b.topic, Partition: b.partition, End: b.end}
		if o, ok := committed.Lookup(b.topic, b.partition); ok && o.At >= 0 {
			m.Committed = &o.At
		}
		want, err := r.target.offset(b, m.Committed, asked)
		if err != nil {
			return nil, err
		}
		m.New = min(max(want, b.start), b.end)
		if m.New != want {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s-%d has no offset %d: %d is the nearest\n", b.topic, b.partition, want, m.New)
		}
		moves = append(moves, m)
	}
	return moves, nil
}

// bounds are where a partition begins and ends, and where the records from the asked time on begin (-1: none do).
type bounds struct {
	topic               string
	partition           int32
	start, end, atMilli int64
}

// listBounds asks for the partitions of a scope, in order.
func listBounds(ctx context.Context, adm *kadm.Client, scope map[string][]int32, milli int64) ([]bounds, error) {
	var names []string
	for name := range scope {
		names = append(names, name)
	}
	slices.Sort(names)
	starts, err := adm.ListStartOffsets(ctx, names...)
	if err != nil {
		return nil, err
	}
	ends, err := adm.ListEndOffsets(ctx, names...)
	if err != nil {
		return nil, err
	}
	var times kadm.ListedOffsets
	if milli >= 0 {
		if times, err = adm.ListOffsetsAfterMilli(ctx, milli, names...); err != nil {
			return nil, err
		}
	}
	var all []bounds
	for _, name := range names {
		if whole, ok := starts.Lookup(name, -1); ok && whole.Err != nil {
			return nil, explain(name, whole.Err, "")
		}
		there := 0
		for p := range int32(len(starts[name])) {
			start, ok := starts.Lookup(name, p)
			end, _ := ends.Lookup(name, p)
			at, timed := times.Lookup(name, p)
			for _, e := range []error{start.Err, end.Err, at.Err} {
				if e != nil {
					return nil, explain(name, e, "")
				}
			}
			if !ok || len(scope[name]) > 0 && !slices.Contains(scope[name], p) {
				continue
			}
			there++
			b := bounds{name, p, start.Offset, end.Offset, -1}
			if timed {
				b.atMilli = at.Offset
			}
			all = append(all, b)
		}
		if want := len(scope[name]); there == 0 || want > there {
			return nil, fmt.Errorf("%s: not every partition named is there; the topic has %s", name, count(int64(len(starts[name])), "partition"))
		}
	}
	return all, nil
}

func (r *resetting) show(out io.Writer, moves []move) error {
	w := newTable(out, "topic", "partition", "committed", "new", "end", "lag")
	for _, m := range moves {
		switch {
		case r.asJSON:
			if err := printJSON(out, m); err != nil {
				return err
			}
		case r.export:
			fmt.Fprintf(out, "%s,%d,%d\n", m.Topic, m.Partition, m.New)
		default:
			w.AppendRow(table.Row{m.Topic, m.Partition, known(m.Committed), m.New, m.End, m.End - m.New})
		}
	}
	if w.Length() > 0 {
		w.Render()
	}
	return nil
}

// commit sets the offsets, and notes which of them are.
func commit(cmd *cobra.Command, adm *kadm.Client, group string, moves []move) error {
	var offsets kadm.Offsets
	for _, m := range moves {
		offsets.Add(kadm.Offset{Topic: m.Topic, Partition: m.Partition, At: m.New, LeaderEpoch: -1})
	}
	resp, err := adm.CommitOffsets(cmd.Context(), group, offsets)
	if err != nil {
		return explain(group, err, "")
	}
	var failed error
	for i := range moves {
		m := &moves[i]
		o, told := resp.Lookup(m.Topic, m.Partition)
		if m.Executed = told && o.Err == nil; told && o.Err != nil {
			failed = errors.Join(failed, explain(fmt.Sprintf("%s-%d", o.Topic, o.Partition), o.Err, ""))
		}
	}
	if failed == nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "set %s of %s\n", count(int64(len(moves)), "offset"), group)
	}
	return failed
}

// readOffsets reads lines of topic,partition,offset, or group,topic,partition,offset of which those of the group count.
func readOffsets(name, group string) (map[string]map[int32]int64, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, wrong("%w", err)
	}
	defer f.Close()
	rows := csv.NewReader(f)
	rows.FieldsPerRecord = -1
	all := map[string]map[int32]int64{}
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, wrong("%s: %w", name, err)
		}
		line, _ := rows.FieldPos(0)
		if len(row) == 4 {
			if row[0] != group {
				continue
			}
			row = row[1:]
		}
		if len(row) != 3 {
			return nil, wrong("%s:%d: %d fields; allowed: topic,partition,offset", name, line, len(row))
		}
		partition, err := strconv.ParseInt(row[1], 10, 32)
		offset, bad := strconv.ParseInt(row[2], 10, 64)
		if err != nil || bad != nil || partition < 0 || offset < 0 || row[0] == "" {
			return nil, wrong("%s:%d: %s is not valid; allowed: topic,partition,offset", name, line, strings.Join(row, ","))
		}
		if all[row[0]] == nil {
			all[row[0]] = map[int32]int64{}
		}
		all[row[0]][int32(partition)] = offset
	}
	if len(all) == 0 {
		return nil, wrong("%s names no partition of %s", name, group)
	}
	return all, nil
}

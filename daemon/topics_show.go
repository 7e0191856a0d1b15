package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func listTopics(c *client) *cobra.Command {
	var internal, asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List topics",
		Args:    exactly(0),
		Example: `  kring topics list --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			adm, err := c.admin()
			if err != nil {
				return err
			}
			defer adm.Close()
			topics, err := adm.ListTopicsWithInternal(cmd.Context())
			if err != nil {
				return err
			}
			w := newTable(cmd.OutOrStdout(), "topic", "partitions", "replicas", "id")
			for _, t := range topics.Sorted() {
				switch {
				case t.IsInternal && !internal:
				case asJSON:
					line := map[string]any{"topic": t.Topic, "id": topicID(t.ID), "partitions": len(t.Partitions),
						"replicas": t.Partitions.NumReplicas(), "internal": t.IsInternal}
					if err := printJSON(cmd.OutOrStdout(), line); err != nil {
						return err
					}
				default:
					w.AppendRow(table.Row{t.Topic, len(t.Partitions), t.Partitions.NumReplicas(), topicID(t.ID)})
				}
			}
			if !asJSON && w.Length() > 0 {
				w.Render()
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.BoolVar(&internal, "internal", false, "also topics that belong to brokers themselves")
	f.BoolVar(&asJSON, "json", false, "one JSON object for each topic")
	return cmd
}

// described is all that describe says of a topic; its JSON form is the output of --json.
type described struct {
	Topic      string            `json:"topic"`
	ID         string            `json:"id"`
	Internal   bool              `json:"internal"`
	Config     map[string]string `json:"config"` // what is set on the topic itself
	Partitions []describedPart   `json:"partitions"`
}

type describedPart struct {
	Partition   int32   `json:"partition"`
	Leader      int32   `json:"leader"` // -1: none
	LeaderEpoch int32   `json:"leaderEpoch"`
	Replicas    []int32 `json:"replicas"`
	ISR         []int32 `json:"isr"`
	Start       int64   `json:"start"` // -1: not known
	End         int64   `json:"end"`
}

func describeTopics(c *client) *cobra.Command {
	var internal, asJSON bool
	cmd := &cobra.Command{
		Use:   "describe [NAME...]",
		Short: "Show partitions, replicas, offsets and settings of topics",
		Args:  cobra.ArbitraryArgs,
		Example: `  kring topics describe words
  kring topics describe --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			adm, err := c.admin()
			if err != nil {
				return err
			}
			defer adm.Close()
			all, missing, err := gather(cmd, adm, args)
			if err != nil {
				return err
			}
			if len(args) == 0 && !internal {
				all = slices.DeleteFunc(all, func(d described) bool { return d.Internal })
			}
			for i, d := range all {
				if asJSON {
					err = printJSON(cmd.OutOrStdout(), d)
				} else {
					if i > 0 {
						fmt.Fprintln(cmd.OutOrStdout())
					}
					d.print(cmd.OutOrStdout())
				}
				if err != nil {
					return err
				}
			}
			return missing
		},
	}
	cmd.ValidArgsFunction = c.completeTopics(true)
	f := cmd.Flags()
	f.BoolVar(&internal, "internal", false, "also topics that belong to brokers themselves, where none is named")
	f.BoolVar(&asJSON, "json", false, "one JSON object for each topic")
	return cmd
}

// gather asks for metadata, offsets and settings of the topics named, or of all; missing names those that cannot be described.
func gather(cmd *cobra.Command, adm *kadm.Client, names []string) (all []described, missing, err error) {
	ctx := cmd.Context()
	topics, err := adm.ListTopicsWithInternal(ctx, names...)
	if err != nil {
		return nil, nil, err
	}
	for _, t := range topics.Sorted() {
		if t.Err != nil {
			missing = errors.Join(missing, explain(t.Topic, t.Err, ""))
			delete(topics, t.Topic)
		}
	}
	if len(topics) == 0 {
		return nil, missing, nil
	}
	starts, err := adm.ListStartOffsets(ctx, topics.Names()...)
	if err = exceptShards(err); err != nil {
		return nil, nil, err
	}
	ends, err := adm.ListEndOffsets(ctx, topics.Names()...)
	if err = exceptShards(err); err != nil {
		return nil, nil, err
	}
	configs, err := adm.DescribeTopicConfigs(ctx, topics.Names()...)
	if err != nil {
		return nil, nil, err
	}
	for _, t := range topics.Sorted() {
		d := described{Topic: t.Topic, ID: topicID(t.ID), Internal: t.IsInternal, Config: map[string]string{}}
		for _, p := range t.Partitions.Sorted() {
			d.Partitions = append(d.Partitions, describedPart{p.Partition, p.Leader, p.LeaderEpoch, p.Replicas, p.ISR,
				offsetOf(starts, t.Topic, p.Partition), offsetOf(ends, t.Topic, p.Partition)})
		}
		for _, r := range configs {
			for _, e := range r.Configs {
				if r.Name == t.Topic && e.Source == kmsg.ConfigSourceDynamicTopicConfig && e.Value != nil {
					d.Config[e.Key] = *e.Value
				}
			}
		}
		all = append(all, d)
	}
	return all, missing, nil
}

// exceptShards is err, unless it is of some partitions alone: one without a leader has no offsets to show, the others have.
func exceptShards(err error) error {
	var shards *kadm.ShardErrors
	if errors.As(err, &shards) {
		return nil
	}
	return err
}

func offsetOf(offsets kadm.ListedOffsets, topic string, partition int32) int64 {
	o, ok := offsets.Lookup(topic, partition)
	if !ok || o.Err != nil {
		return -1
	}
	return o.Offset
}

func (d *described) print(out io.Writer) {
	fmt.Fprintf(out, "%s  id %s, %s", d.Topic, d.ID, count(int64(len(d.Partitions)), "partition"))
	if d.Internal {
		fmt.Fprint(out, ", internal")
	}
	fmt.Fprintln(out)
	var settings []string
	for k, v := range d.Config {
		settings = append(settings, k+"="+v)
	}
	slices.Sort(settings)
	if len(settings) > 0 {
		fmt.Fprintf(out, "settings  %s\n", strings.Join(settings, " "))
	}
	w := newTable(out, "partition", "leader", "epoch", "replicas", "in sync", "start", "end", "offsets")
	for _, p := range d.Partitions {
		if p.Start < 0 || p.End < 0 {
			w.AppendRow(table.Row{p.Partition, orNone(p.Leader), p.LeaderEpoch, brokers(p.Replicas), brokers(p.ISR), "-", "-", "-"})
			continue
		}
		w.AppendRow(table.Row{p.Partition, p.Leader, p.LeaderEpoch, brokers(p.Replicas), brokers(p.ISR), p.Start, p.End, p.End - p.Start})
	}
	w.Render()
}

// orNone is a leader as kafka-topics names it.
func orNone(leader int32) string {
	if leader < 0 {
		return "none"
	}
	return fmt.Sprint(leader)
}

func brokers(ids []int32) string {
	return strings.Join(strings.Fields(strings.Trim(fmt.Sprint(ids), "[]")), ",")
}

// topicID is an id as Kafka prints it.
func topicID(id kadm.TopicID) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

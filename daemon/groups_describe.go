package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
)

// describedGroup is all that describe says of a group; its JSON form is the output of --json.
type describedGroup struct {
	Group        string            `json:"group"`
	State        string            `json:"state"`
	ProtocolType string            `json:"protocolType"`
	Protocol     string            `json:"protocol"` // how partitions are assigned
	Coordinator  int32             `json:"coordinator"`
	Members      []describedMember `json:"members"`
	Offsets      []describedOffset `json:"offsets"`
	Lag          *int64            `json:"lag"` // of all partitions with a committed offset; null: there is none
}

type describedMember struct {
	Member     string     `json:"member"`
	Instance   *string    `json:"instance"` // null: not a static member
	Client     string     `json:"client"`
	Host       string     `json:"host"`
	Partitions []assigned `json:"partitions"`
}

type assigned struct {
	Topic      string  `json:"topic"`
	Partitions []int32 `json:"partitions"`
}

// describedOffset is a partition the group has committed an offset of, or is assigned. A number that is not known is null.
type describedOffset struct {
	Topic     string  `json:"topic"`
	Partition int32   `json:"partition"`
	Committed *int64  `json:"committed"`
	Metadata  string  `json:"metadata,omitempty"`
	End       *int64  `json:"end"`
	Lag       *int64  `json:"lag"`
	Member    *string `json:"member"` // who is assigned the partition
}

func describeGroups(c *client) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "describe [GROUP...]",
		Short: "Show members, what they are assigned, committed offsets and lag of groups",
		Args:  cobra.ArbitraryArgs,
		Example: `  kring groups describe readers
  kring groups describe --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			adm, err := c.admin()
			if err != nil {
				return err
			}
			defer adm.Close()
			all, missing, err := c.gatherGroups(cmd, adm, args)
			if err != nil {
				return err
			}
			for i := range all {
				if asJSON {
					err = printJSON(cmd.OutOrStdout(), all[i])
				} else {
					if i > 0 {
						fmt.Fprintln(cmd.OutOrStdout())
					}
					all[i].print(cmd.OutOrStdout())
				}
				if err != nil {
					return err
				}
			}
			return missing
		},
	}
	cmd.ValidArgsFunction = c.completeGroups
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object for each group")
	return cmd
}

// gatherGroups describes the groups named, or all; missing names those that cannot be described.
func (c *client) gatherGroups(cmd *cobra.Command, adm *kadm.Client, names []string) (all []describedGroup, missing, err error) {
	ctx := cmd.Context()
	if len(names) == 0 {
		groups, err := adm.ListGroups(ctx)
		if err != nil {
			return nil, nil, unshard(err)
		}
		if names = groups.Groups(); len(names) == 0 {
			return nil, nil, nil
		}
	}
	groups, fetched, err := c.askGroups(ctx, adm, names)
	if err != nil {
		return nil, nil, explain(strings.Join(names, ", "), err, "")
	}
	topics := map[string]bool{}
	for _, g := range groups {
		for topic := range g.AssignedPartitions() {
			topics[topic] = true
		}
		for topic := range fetched[g.Group].Fetched {
			topics[topic] = true
		}
	}
	ends, err := endsOf(cmd, adm, topics)
	if err != nil {
		return nil, nil, err
	}
	for _, g := range groups.Sorted() {
		offsets := fetched[g.Group]
		switch {
		case g.Err != nil:
			missing = errors.Join(missing, explain(g.Group, g.Err, g.ErrMessage))
		case offsets.Err != nil:
			missing = errors.Join(missing, explain(g.Group, offsets.Err, ""))
		case g.State == "Dead" && len(offsets.Fetched) == 0:
			missing = errors.Join(missing, errNoGroup(g.Group))
		default:
			all = append(all, describedOf(&g, offsets.Fetched, ends))
		}
	}
	return all, missing, nil
}

// askGroups asks for groups and their offsets until there is a coordinator to say; err is what hits all of them.
func (c *client) askGroups(ctx context.Context, adm *kadm.Client, names []string) (groups kadm.DescribedGroups,
	fetched kadm.FetchOffsetsResponses, err error) {
	_ = c.again(ctx, func() error {
		if groups, err = adm.DescribeGroups(ctx, names...); err != nil {
			err = unshard(err)
			return err
		}
		fetched = adm.FetchManyOffsets(ctx, names...)
		for _, g := range groups.Sorted() {
			if one := cmp.Or(g.Err, fetched[g.Group].Err); one != nil {
				return one
			}
		}
		return nil
	})
	return groups, fetched, err
}

// endsOf asks for the ends of topics; one that is gone has none.
func endsOf(cmd *cobra.Command, adm *kadm.Client, topics map[string]bool) (kadm.ListedOffsets, error) {
	var names []string
	for name := range topics {
		names = append(names, name)
	}
	if len(names) == 0 {
		return nil, nil
	}
	return adm.ListEndOffsets(cmd.Context(), names...)
}

func describedOf(g *kadm.DescribedGroup, offsets kadm.OffsetResponses, ends kadm.ListedOffsets) describedGroup {
	d := describedGroup{Group: g.Group, State: g.State, ProtocolType: g.ProtocolType, Protocol: g.Protocol, Coordinator: g.Coordinator.NodeID,
		Members: []describedMember{}, Offsets: []describedOffset{}}
	type place struct {
		topic     string
		partition int32
	}
	seen := map[place]*describedOffset{}
	at := func(topic string, partition int32) *describedOffset {
		o := seen[place{topic, partition}]
		if o == nil {
			o = &describedOffset{Topic: topic, Partition: partition}
			if end, ok := ends.Lookup(topic, partition); ok && end.Err == nil {
				o.End = &end.Offset
			}
			seen[place{topic, partition}] = o
		}
		return o
	}
	for i := range g.Members {
		m := &g.Members[i]
		dm := describedMember{Member: m.MemberID, Instance: m.InstanceID, Client: m.ClientID, Host: m.ClientHost, Partitions: []assigned{}}
		if a, ok := m.Assigned.AsConsumer(); ok {
			for _, t := range a.Topics {
				slices.Sort(t.Partitions)
				dm.Partitions = append(dm.Partitions, assigned{t.Topic, t.Partitions})
				for _, p := range t.Partitions {
					at(t.Topic, p).Member = &m.MemberID
				}
			}
		}
		slices.SortFunc(dm.Partitions, func(a, b assigned) int { return strings.Compare(a.Topic, b.Topic) })
		d.Members = append(d.Members, dm)
	}
	offsets.Each(func(r kadm.OffsetResponse) {
		if o := at(r.Topic, r.Partition); r.Err == nil && r.At >= 0 {
			committed := r.At
			o.Committed, o.Metadata = &committed, r.Metadata
			if o.End != nil {
				lag := *o.End - committed
				o.Lag = &lag
				if d.Lag == nil {
					d.Lag = new(int64)
				}
				*d.Lag += lag
			}
		}
	})
	for _, o := range seen {
		d.Offsets = append(d.Offsets, *o)
	}
	slices.SortFunc(d.Offsets, func(a, b describedOffset) int {
		return cmp.Or(strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return d
}

func (d *describedGroup) print(out io.Writer) {
	fmt.Fprintf(out, "%s  %s, %s", d.Group, d.State, count(int64(len(d.Members)), "member"))
	if d.Protocol != "" {
		fmt.Fprintf(out, ", assigned by %s", d.Protocol)
	}
	if d.ProtocolType != "" && d.ProtocolType != "consumer" {
		fmt.Fprintf(out, ", of kind %s", d.ProtocolType)
	}
	fmt.Fprintf(out, ", coordinated by broker %d, lag %s", d.Coordinator, known(d.Lag))
	if without := d.uncommitted(); without > 0 && d.Lag != nil {
		fmt.Fprintf(out, " and %s without a committed offset", count(without, "partition"))
	}
	fmt.Fprintln(out)
	if len(d.Members) > 0 {
		w := newTable(out, "member", "instance", "client", "host", "partitions")
		for _, m := range d.Members {
			instance := "-"
			if m.Instance != nil {
				instance = *m.Instance
			}
			w.AppendRow(table.Row{m.Member, instance, m.Client, m.Host, partitionsOf(m.Partitions)})
		}
		w.Render()
	}
	if len(d.Offsets) > 0 {
		w := newTable(out, "topic", "partition", "committed", "end", "lag", "member")
		for _, o := range d.Offsets {
			member := "-"
			if o.Member != nil {
				member = *o.Member
			}
			w.AppendRow(table.Row{o.Topic, o.Partition, known(o.Committed), known(o.End), known(o.Lag), member})
		}
		w.Render()
	}
}

// uncommitted is how many partitions are assigned of which nothing is committed: their lag is not known.
func (d *describedGroup) uncommitted() (n int64) {
	for i := range d.Offsets {
		if d.Offsets[i].Committed == nil {
			n++
		}
	}
	return n
}

func errNoGroup(name string) error {
	return fmt.Errorf("%s: there is no such group; kring groups list shows those there are", name)
}

package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func topicsCommand() *cobra.Command {
	c := &client{}
	cmd := &cobra.Command{
		Use:   "topics",
		Short: "Create, list, describe, delete and alter topics",
		Args:  cobra.ArbitraryArgs,
		Example: `  kring topics create words -p 3 --config retention.ms=3600000
  kring topics list
  kring topics describe words`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return wrong("there is no command %q; kring topics --help lists them", "topics "+args[0])
			}
			return cmd.Help()
		},
	}
	c.flags(cmd)
	cmd.AddCommand(createTopics(c), listTopics(c), describeTopics(c), deleteTopics(c), alterTopic(c))
	return cmd
}

// outcomes says what happened to each of several topics and fails if one of them failed.
type outcomes struct {
	out, err io.Writer
	did      string
	what     string // "group" and the like; "" for topics
	forgiven error  // what counts as success
	instead  string // what was so before, then
	asked    int
	failed   int
	last     error
}

func (o *outcomes) add(topic string, err error, detail string) {
	switch {
	case err == nil:
		fmt.Fprintf(o.out, "%s %s\n", o.did, topic)
	case o.forgiven != nil && errors.Is(err, o.forgiven):
		fmt.Fprintf(o.out, "%s %s\n", topic, o.instead)
	default:
		o.failed++
		o.last = explain(topic, err, detail)
		if o.asked > 1 {
			fmt.Fprintf(o.err, "kring: %s\n", oneLine(o.last))
		}
	}
}

func (o *outcomes) result() error {
	if o.failed > 0 && o.asked > 1 {
		what := o.what
		if what == "" {
			what = "topic"
		}
		return fmt.Errorf("%d of %s failed", o.failed, count(int64(o.asked), what))
	}
	return o.last
}

func createTopics(c *client) *cobra.Command {
	var partitions int32
	var factor int16
	var settings []string
	var ifAbsent bool
	cmd := &cobra.Command{
		Use:   "create NAME...",
		Short: "Create topics",
		Args:  atLeast(1),
		Example: `  kring topics create words
  kring topics create a b c -p 12 --config cleanup.policy=compact --if-not-exists`,
		RunE: func(cmd *cobra.Command, args []string) error {
			configs, err := keyValues(settings)
			if err != nil {
				return err
			}
			adm, err := c.admin()
			if err != nil {
				return err
			}
			defer adm.Close()
			resp, err := adm.CreateTopics(cmd.Context(), partitions, factor, configs, args...)
			if err != nil {
				return err
			}
			o := outcomes{out: cmd.OutOrStdout(), err: cmd.ErrOrStderr(), did: "created", asked: len(args)}
			if ifAbsent {
				o.forgiven, o.instead = kerr.TopicAlreadyExists, "exists already"
			}
			for _, name := range args {
				o.add(name, resp[name].Err, resp[name].ErrMessage)
			}
			return o.result()
		},
	}
	f := cmd.Flags()
	f.Int32VarP(&partitions, "partitions", "p", -1, "number of partitions; -1 for the broker's num.partitions")
	f.Int16VarP(&factor, "replication-factor", "r", -1, "replicas of each partition; -1 for the broker's default")
	f.StringArrayVarP(&settings, "config", "c", nil, "a setting of the topic, `key=value`")
	f.BoolVar(&ifAbsent, "if-not-exists", false, "a topic that exists already is no failure")
	return cmd
}

func deleteTopics(c *client) *cobra.Command {
	var ifPresent bool
	cmd := &cobra.Command{
		Use:     "delete NAME...",
		Short:   "Delete topics with all their records",
		Args:    atLeast(1),
		Example: `  kring topics delete words`,
		RunE: func(cmd *cobra.Command, args []string) error {
			adm, err := c.admin()
			if err != nil {
				return err
			}
			defer adm.Close()
			resp, err := adm.DeleteTopics(cmd.Context(), args...)
			if err != nil {
				return err
			}
			o := outcomes{out: cmd.OutOrStdout(), err: cmd.ErrOrStderr(), did: "deleted", asked: len(args)}
			if ifPresent {
				o.forgiven, o.instead = kerr.UnknownTopicOrPartition, "does not exist"
			}
			for _, name := range args {
				o.add(name, resp[name].Err, resp[name].ErrMessage)
			}
			return o.result()
		},
	}
	cmd.ValidArgsFunction = c.completeTopics(true)
	cmd.Flags().BoolVar(&ifPresent, "if-exists", false, "a topic that does not exist is no failure")
	return cmd
}

func alterTopic(c *client) *cobra.Command {
	var partitions int
	var settings, remove []string
	cmd := &cobra.Command{
		Use:   "alter NAME",
		Short: "Change a topic's number of partitions and its settings",
		Args:  exactly(1),
		Example: `  kring topics alter words --partitions 6
  kring topics alter words --config retention.ms=60000 --delete-config segment.bytes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			alter, err := alterations(settings, remove)
			if err != nil {
				return err
			}
			if partitions == 0 && len(alter) == 0 {
				return wrong("nothing to alter: give --partitions, --config or --delete-config")
			}
			adm, err := c.admin()
			if err != nil {
				return err
			}
			defer adm.Close()
			if alter, err = unset(cmd, adm, args[0], alter); err != nil {
				return err
			}
			return runAlter(cmd, adm, args[0], partitions, alter)
		},
	}
	f := cmd.Flags()
	cmd.ValidArgsFunction = c.completeTopics(false)
	f.IntVarP(&partitions, "partitions", "p", 0, "the new number of partitions, more than now")
	f.StringArrayVarP(&settings, "config", "c", nil, "a setting to set, `key=value`")
	f.StringArrayVar(&remove, "delete-config", nil, "a `key` to set back to the broker's default")
	return cmd
}

func alterations(settings, remove []string) ([]kadm.AlterConfig, error) {
	set, err := keyValues(settings)
	if err != nil {
		return nil, err
	}
	var alter []kadm.AlterConfig
	for name, value := range set {
		alter = append(alter, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: value})
	}
	for _, name := range remove {
		alter = append(alter, kadm.AlterConfig{Op: kadm.DeleteConfig, Name: name})
	}
	return alter, nil
}

// unset looks at the settings that are to be set back, which a broker does without a word whatever they are: one that no topic has is
// refused, and one that is not set left out.
func unset(cmd *cobra.Command, adm *kadm.Client, topic string, alter []kadm.AlterConfig) ([]kadm.AlterConfig, error) {
	back := func(a kadm.AlterConfig) bool { return a.Op == kadm.DeleteConfig }
	if !slices.ContainsFunc(alter, back) {
		return alter, nil
	}
	resp, err := adm.DescribeTopicConfigs(cmd.Context(), topic)
	if err != nil {
		return nil, err
	}
	there, err := resp.On(topic, nil)
	if err == nil {
		err = there.Err
	}
	if err != nil {
		return nil, explain(topic, err, "")
	}
	for _, a := range slices.Clone(alter) {
		if !back(a) {
			continue
		}
		i := slices.IndexFunc(there.Configs, func(c kadm.Config) bool { return c.Key == a.Name })
		switch {
		case i < 0:
			return nil, fmt.Errorf("%s: %s is no setting of a topic", topic, a.Name)
		case there.Configs[i].Source != kmsg.ConfigSourceDynamicTopicConfig:
			fmt.Fprintf(cmd.ErrOrStderr(), "%s of %s was not set\n", a.Name, topic)
			alter = slices.DeleteFunc(alter, func(x kadm.AlterConfig) bool { return back(x) && x.Name == a.Name })
		}
	}
	return alter, nil
}

func runAlter(cmd *cobra.Command, adm *kadm.Client, topic string, partitions int, alter []kadm.AlterConfig) error {
	if partitions != 0 {
		resp, err := adm.UpdatePartitions(cmd.Context(), partitions, topic)
		if err != nil {
			return err
		}
		if r := resp[topic]; r.Err != nil {
			return explain(topic, r.Err, r.ErrMessage)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s has %s\n", topic, count(int64(partitions), "partition"))
	}
	if len(alter) == 0 {
		return nil
	}
	resp, err := adm.AlterTopicConfigs(cmd.Context(), alter, topic)
	if err != nil {
		return err
	}
	for _, r := range resp {
		if r.Err != nil {
			return explain(topic, r.Err, r.ErrMessage)
		}
	}
	fmt.Fprintf(cmd.OutOrStdout(), "altered %s of %s\n", count(int64(len(alter)), "setting"), topic)
	return nil
}

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

func groupsCommand() *cobra.Command {
	c := &client{}
	cmd := &cobra.Command{
		Use:   "groups",
		Short: "List, describe and delete groups of consumers, and reset their offsets",
		Args:  cobra.ArbitraryArgs,
		Example: `  kring groups list
  kring groups describe readers
  kring groups reset-offsets readers --topic words --to-earliest`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return wrong("there is no command %q; kring groups --help lists them", "groups "+args[0])
			}
			return cmd.Help()
		},
	}
	c.flags(cmd)
	cmd.AddCommand(listGroups(c), describeGroups(c), resetOffsets(c), deleteGroups(c))
	return cmd
}

func listGroups(c *client) *cobra.Command {
	var states []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List groups",
		Args:  exactly(0),
		Example: `  kring groups list
  kring groups list --state Stable,Empty --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			adm, err := c.admin()
			if err != nil {
				return err
			}
			defer adm.Close()
			groups, err := adm.ListGroups(cmd.Context(), states...)
			if err != nil {
				return unshard(err)
			}
			w := newTable(cmd.OutOrStdout(), "group", "state", "kind", "coordinator")
			for _, g := range groups.Sorted() {
				if asJSON {
					line := map[string]any{"group": g.Group, "state": g.State, "protocolType": g.ProtocolType, "coordinator": g.Coordinator}
					if err := printJSON(cmd.OutOrStdout(), line); err != nil {
						return err
					}
					continue
				}
				w.AppendRow(table.Row{g.Group, g.State, orDash(g.ProtocolType), g.Coordinator})
			}
			if !asJSON && w.Length() > 0 {
				w.Render()
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&states, "state", nil, "only groups in these `states`: Stable, Empty, PreparingRebalance, CompletingRebalance, Dead")
	f.BoolVar(&asJSON, "json", false, "one JSON object for each group")
	completeFlag(cmd, "state", "Stable", "Empty", "PreparingRebalance", "CompletingRebalance", "Dead")
	return cmd
}

func deleteGroups(c *client) *cobra.Command {
	var ifPresent bool
	cmd := &cobra.Command{
		Use:     "delete GROUP...",
		Short:   "Delete groups that have no members, with their offsets",
		Args:    atLeast(1),
		Example: `  kring groups delete readers --if-exists`,
		RunE: func(cmd *cobra.Command, args []string) error {
			adm, err := c.admin()
			if err != nil {
				return err
			}
			defer adm.Close()
			var resp kadm.DeleteGroupResponses
			err = c.again(cmd.Context(), func() (err error) {
				resp, err = adm.DeleteGroups(cmd.Context(), args...)
				return unshard(err)
			})
			if err != nil {
				return explain(strings.Join(args, ", "), err, "")
			}
			o := outcomes{out: cmd.OutOrStdout(), err: cmd.ErrOrStderr(), did: "deleted", what: "group", asked: len(args)}
			if ifPresent {
				o.forgiven, o.instead = kerr.GroupIDNotFound, "does not exist"
			}
			for _, name := range args {
				o.add(name, resp[name].Err, "")
			}
			return o.result()
		},
	}
	cmd.ValidArgsFunction = c.completeGroups
	cmd.Flags().BoolVar(&ifPresent, "if-exists", false, "a group that does not exist is no failure")
	return cmd
}

// completeGroups offers the names of groups.
func (c *client) completeGroups(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	c.timeout = min(c.timeout, time.Second)
	adm, err := c.admin()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer adm.Close()
	groups, err := adm.ListGroups(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return groups.Groups(), cobra.ShellCompDirectiveNoFileComp
}

// describeOne asks for one group; one that does not exist has the state Dead.
func (c *client) describeOne(cmd *cobra.Command, adm *kadm.Client, group string) (d kadm.DescribedGroup, err error) {
	err = c.again(cmd.Context(), func() error {
		all, err := adm.DescribeGroups(cmd.Context(), group)
		if d = all[group]; err != nil {
			return unshard(err)
		}
		return d.Err
	})
	if err != nil {
		return d, explain(group, err, d.ErrMessage)
	}
	return d, nil
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// known is a number, or a dash where it is not known.
func known(n *int64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

// partitionsOf is a list of partitions of topics: "words 0,1; other 3".
func partitionsOf(list []assigned) string {
	parts := make([]string, len(list))
	for i, a := range list {
		parts[i] = a.Topic + " " + brokers(a.Partitions)
	}
	return orDash(strings.Join(parts, "; "))
}

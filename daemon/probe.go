package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"kring/daemon/config"
	"kring/ring"
)

func probeCommand() *cobra.Command {
	var asJSON bool
	var overrides []string
	cmd := &cobra.Command{
		Use:   "probe [server.properties]",
		Short: "Show what the kernel, limits and seccomp allow, which path each operation takes, and the cure for each refusal",
		Args:  atMost(1),
		Example: `  kring probe
  kring probe /etc/kring/server.properties --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, _, err := config.Load(first(args), overrides)
			if err != nil {
				return unreadable(err)
			}
			return probe(cmd.OutOrStdout(), cfg, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object for each finding")
	cmd.Flags().StringArrayVar(&overrides, "override", nil, "a setting, `key=value`")
	return cmd
}

func probe(out io.Writer, cfg *config.Config, asJSON bool) error {
	findings, refused := ring.Probe(kernelOptions(cfg, slog.New(slog.DiscardHandler)))
	w := newTable(out, "what", "found", "cure")
	for _, f := range findings {
		if asJSON {
			line, err := json.Marshal(map[string]any{"what": f.What, "found": f.State, "ok": f.OK, "cure": f.Cure})
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "%s\n", line)
			continue
		}
		w.AppendRow(table.Row{f.What, f.State, f.Cure})
	}
	if !asJSON {
		w.Render()
	}
	return refused
}

// atMost, atLeast and exactly are cobra's checks of the number of arguments, with our exit status.
func atMost(n int) cobra.PositionalArgs  { return checked(cobra.MaximumNArgs(n)) }
func atLeast(n int) cobra.PositionalArgs { return checked(cobra.MinimumNArgs(n)) }
func exactly(n int) cobra.PositionalArgs { return checked(cobra.ExactArgs(n)) }

func checked(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if check(cmd, args) != nil {
			takes := strings.TrimSpace(strings.TrimPrefix(cmd.Use, cmd.Name()))
			if takes == "" {
				takes = "no arguments"
			}
			return wrong("%s takes %s, not %s; see %s --help", cmd.CommandPath(), takes, count(int64(len(args)), "argument"), cmd.CommandPath())
		}
		return nil
	}
}

func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/term"
)

// client is what the client commands have in common: which brokers, and how long to wait for them.
type client struct {
	brokers []string
	timeout time.Duration
}

// metadataAge lets a topic made on the fly be seen soon; these clients live shortly.
const metadataAge = 100 * time.Millisecond

func (c *client) flags(cmd *cobra.Command) {
	f := cmd.PersistentFlags()
	f.StringSliceVarP(&c.brokers, "bootstrap-server", "b", []string{"localhost:9092"}, "brokers to ask first, `host:port`")
	f.DurationVar(&c.timeout, "timeout", 10*time.Second, "how long a broker may take to answer")
}

func (c *client) open(opts ...kgo.Opt) (*kgo.Client, error) {
	if err := checkBrokers(c.brokers); err != nil {
		return nil, err
	}
	patient.Store(int64(c.timeout))
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(c.brokers...),
		kgo.ClientID("kring"),
		kgo.DialTimeout(c.timeout),
		kgo.RetryTimeout(c.timeout),
		kgo.RequestTimeoutOverhead(c.timeout),
		kgo.MetadataMinAge(metadataAge),
	}, opts...)...)
	if err != nil {
		return nil, wrong("%w", err)
	}
	return cl, nil
}

func (c *client) admin() (*kadm.Client, error) {
	cl, err := c.open()
	if err != nil {
		return nil, err
	}
	adm := kadm.NewClient(cl)
	adm.SetTimeoutMillis(int32(min(c.timeout.Milliseconds(), 1<<30)))
	return adm, nil
}

// againEvery is how soon a group's coordinator that was not there is looked for again.
const againEvery = 100 * time.Millisecond

// again asks about a group until its coordinator is there, or time is up: a broker that is new makes the topic of offsets first, and
// one that has just started reads it.
func (c *client) again(ctx context.Context, ask func() error) error {
	for until := time.Now().Add(c.timeout); ; {
		err := ask()
		away := errors.Is(err, kerr.CoordinatorNotAvailable) || errors.Is(err, kerr.CoordinatorLoadInProgress) ||
			errors.Is(err, kerr.NotCoordinator)
		if !away || time.Now().After(until) {
			return err
		}
		select {
		case <-time.After(againEvery):
		case <-ctx.Done():
			return err
		}
	}
}

func newTable(out io.Writer, columns ...any) table.Writer {
	w := table.NewWriter()
	w.SetOutputMirror(out)
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	w.SetStyle(style)
	w.SuppressTrailingSpaces()
	w.AppendHeader(table.Row(columns))
	return w
}

func printJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// keyValues reads key=value settings from the command line.
func keyValues(settings []string) (map[string]*string, error) {
	m := map[string]*string{}
	for _, s := range settings {
		k, v, ok := strings.Cut(s, "=")
		if !ok || k == "" {
			return nil, wrong("%q is not valid; allowed: key=value", s)
		}
		m[k] = &v
	}
	return m, nil
}

// progress is a bar on standard error for work that takes long, seen only by a person at a terminal.
func progress(total int64, what string) *progressbar.ProgressBar {
	out := io.Writer(os.Stderr)
	if !terminal(os.Stderr) {
		out = io.Discard
	}
	return progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(out),
		progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(),
		progressbar.OptionShowIts(),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetPredictTime(total > 0),
	)
}

func count(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

func terminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// completeFlag offers the values a flag may have.
func completeFlag(cmd *cobra.Command, flag string, values ...cobra.Completion) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic("daemon: completion of a flag that is not there: " + err.Error())
	}
}

// completeTopics offers the names of topics for the first argument, or for every one if many is set.
func (c *client) completeTopics(many bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && !many {
			return nil, cobra.ShellCompDirectiveDefault
		}
		c.timeout = min(c.timeout, time.Second)
		adm, err := c.admin()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer adm.Close()
		topics, err := adm.ListTopics(cmd.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return topics.Names(), cobra.ShellCompDirectiveNoFileComp
	}
}

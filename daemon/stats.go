package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// statsAddress is where a broker that `make run` or the package starts serves its numbers.
const statsAddress = "127.0.0.1:9404"

// pageMost bounds what is read of an answer.
const pageMost = 256 << 20

func statsCommand() *cobra.Command {
	var address string
	var interval time.Duration
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Show the main numbers of a running broker: requests, traffic, loops, logs, groups",
		Long: `Show the main numbers of a running broker, from the port that its setting kring.metrics.address names. Rates are those of an
interval while the command waits; with --interval 0 there are only totals since the broker's start.`,
		Args: exactly(0),
		Example: `  kring stats
  kring stats --interval 0 --json
  kring stats --address 127.0.0.1:9404`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, _, err := net.SplitHostPort(address); err != nil {
				return wrong("--address %s is not valid; allowed: host:port", address)
			}
			if interval < 0 {
				return wrong("--interval %v is not valid; allowed: 0 or more", interval)
			}
			s, err := watch(cmd.Context(), address, interval)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), s)
			}
			s.print(cmd.OutOrStdout())
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&address, "address", statsAddress, "where the broker serves its numbers, `host:port`")
	f.DurationVar(&interval, "interval", time.Second, "how long to watch for rates; 0: not at all")
	f.BoolVar(&asJSON, "json", false, "one JSON object")
	return cmd
}

// watch reads the numbers twice, interval apart, and makes stats of the two.
func watch(ctx context.Context, address string, interval time.Duration) (*stats, error) {
	before, err := fetchNumbers(ctx, address)
	if err != nil {
		return nil, err
	}
	if interval == 0 {
		return newStats(before, nil, 0), nil
	}
	began := time.Now()
	select {
	case <-time.After(interval):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	after, err := fetchNumbers(ctx, address)
	if err != nil {
		return nil, err
	}
	return newStats(after, before, time.Since(began)), nil
}

// fetchNumbers asks a broker once.
func fetchNumbers(ctx context.Context, address string) (*numbersRead, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*watcherPatience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return nil, wrong("--address %s is not valid; allowed: host:port", address)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, noNumbers(address, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, pageMost))
	if err != nil {
		return nil, noNumbers(address, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s: no broker's numbers are there", address, resp.Status)
	}
	families, err := parseNumbers(string(text))
	if err != nil {
		return nil, fmt.Errorf("what %s serves are not a broker's numbers: %w", address, err)
	}
	n := &numbersRead{}
	for i := range families {
		n.add(&families[i])
	}
	if n.families["kring_broker_state"] == nil {
		return nil, fmt.Errorf("what %s serves are not a broker's numbers", address)
	}
	return n, nil
}

// noNumbers says why an address does not answer, and what to do.
func noNumbers(address string, err error) error {
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Op == "dial":
		return fmt.Errorf("no numbers at %s: %w; kring.metrics.address says where a broker serves them", address, op.Err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		strings.Contains(err.Error(), "malformed HTTP"):
		return fmt.Errorf("what listens at %s does not speak HTTP: it may be a port for clients; kring.metrics.address says where a broker "+
			"serves its numbers", address)
	}
	return err
}

// numbersRead are families by name.
type numbersRead struct{ families map[string]*family }

func (n *numbersRead) add(f *family) {
	if n.families == nil {
		n.families = map[string]*family{}
	}
	n.families[f.name] = f
}

// samples are those of a family of ours, nil if it is not there.
func (n *numbersRead) samples(name string) []sample {
	if n == nil || n.families["kring_"+name] == nil {
		return nil
	}
	return n.families["kring_"+name].samples
}

// sum adds up the samples of a family whose labels are these (name and value in turn).
func (n *numbersRead) sum(name string, labels ...string) float64 {
	total := 0.0
next:
	for _, s := range n.samples(name) {
		for i := 0; i < len(labels); i += 2 {
			if s.label(labels[i]) != labels[i+1] {
				continue next
			}
		}
		total += s.value
	}
	return total
}

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"kring/systemd"
)

func main() {
	tuneMemory()
	ctx := signals()
	err := command().ExecuteContext(ctx)
	if err == nil {
		err = helpRefused
	}
	sayLastWords(lastPatience)
	if err != nil && !errors.Is(err, context.Canceled) {
		_, _, priority := severity(slog.LevelError)
		if !journalReads(os.Stderr) {
			priority = ""
		}
		fmt.Fprintln(os.Stderr, priority+"kring: "+said(err))
	}
	os.Exit(statusOf(err))
}

// helpRefused is why no help was shown: that of a command that is not there would be another one's, and the library takes any for success.
var helpRefused error

// command is the whole command line.
func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "kring",
		Short:         "A Kafka-protocol broker for Linux, on io_uring",
		Version:       versionText(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return wrong("there is no command %q; kring --help lists them", args[0])
			}
			return cmd.Help()
		},
		Example: `  kring broker                       start a broker here, data in ./kring-data
  kring topics create words -p 3
  echo hello | kring produce words
  kring consume words --from-beginning --exit`,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return badFlag(cmd, err) })
	root.AddCommand(brokerCommand(), probeCommand(), topicsCommand(), groupsCommand(), produceCommand(), consumeCommand(), logCommand(),
		statsCommand(), benchCommand(), storeCommand(), exitTopic())
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if rest := cmd.Flags().Args(); cmd.HasSubCommands() && len(rest) > 0 {
			helpRefused = wrong("there is no command %q; %s --help lists them",
				strings.TrimPrefix(cmd.CommandPath()+" "+rest[0], root.Name()+" "), cmd.CommandPath())
			return
		}
		help(cmd, args)
	})
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		if c.Name() == "help" {
			c.Args, c.Example = knownTopic, "  kring help groups reset-offsets\n  kring help exit-codes"
		}
	}
	return root
}

// knownTopic refuses a help topic that is no command.
func knownTopic(cmd *cobra.Command, args []string) error {
	if _, rest, err := cmd.Root().Find(args); err != nil || len(rest) > 0 {
		return wrong("there is no command %q; kring --help lists them", strings.Join(args, " "))
	}
	return nil
}

// badFlag says what a flag allows where pflag shows what Go's parser thought.
func badFlag(cmd *cobra.Command, err error) error {
	var bad interface {
		error
		GetValue() string
	}
	if errors.As(err, &bad) {
		cause := errors.Unwrap(bad)
		what, allowed := strings.TrimSuffix(bad.Error(), ": "+cause.Error()), ""
		switch number := (*strconv.NumError)(nil); {
		case errors.Is(cause, strconv.ErrRange):
			allowed = "a smaller whole number"
		case errors.As(cause, &number):
			allowed = "a whole number"
		case strings.HasPrefix(cause.Error(), "time: "):
			allowed = "a time such as 500ms, 10s or 1m"
		}
		if allowed != "" {
			return wrong("%s; allowed: %s", what, allowed)
		}
	}
	return wrong("%w; see %s --help", err, cmd.CommandPath())
}

// sameOrder is how soon after a signal another one means the same to who is lenient: timeout(1) sends its own to the program and to
// the process group.
const sameOrder = 100 * time.Millisecond

// lenient is set by a command that has something to finish which others wait for.
var lenient atomic.Bool

// signals ends the context by the first signal and the process by the second.
func signals() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	c := make(chan os.Signal, 2)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	if !systemd.Asked() { // a terminal that goes away; a service is told to reload by it
		signal.Notify(c, syscall.SIGHUP)
	}
	go func() {
		<-c
		cancel()
		for asked := time.Now(); ; {
			if <-c; time.Since(asked) >= sameOrder || !lenient.Load() {
				break
			}
		}
		if lastWords.Load() != nil { // of a broker
			slog.Warn("a second signal ends the broker at once: the next start recovers its logs")
		}
		sayLastWords(hurryPatience)
		os.Exit(exitKilled)
	}()
	return ctx
}

// reloads is where a service is told to read its settings again.
func reloads() <-chan os.Signal {
	c := make(chan os.Signal, 1)
	if systemd.Asked() {
		signal.Notify(c, syscall.SIGHUP)
	}
	return c
}

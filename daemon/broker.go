package main

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"kring/daemon/config"
)

func brokerCommand() *cobra.Command {
	var overrides []string
	cmd := &cobra.Command{
		Use:   "broker [server.properties]",
		Short: "Run a broker until SIGTERM or Ctrl-C",
		Long: `Run a broker until SIGTERM or Ctrl-C; a second signal ends it at once. While logs are being recovered the first one
does, and the next start goes on with that. Under systemd SIGHUP reads the settings again:
those that Kafka's tools may alter at run time are put in force, of the others it is said that they wait for a restart.

Settings are those of Apache Kafka's server.properties and ours below. Without a file, data goes to ./kring-data (under
systemd, to its state directory) and the broker listens on port 9092 of every address. Settings that do nothing here are named
once at the start; one that cannot be ignored safely is refused.

` + ownSettings(),
		Args: atMost(1),
		Example: `  kring broker
  kring broker /etc/kring/server.properties
  kring broker --override listeners=PLAINTEXT://127.0.0.1:19092 --override log.dirs=/srv/kring`,
		RunE: func(cmd *cobra.Command, args []string) error {
			read := func() (*config.Config, []config.Warning, error) { return config.Load(first(args), overrides) }
			cfg, warnings, err := read()
			if err != nil {
				return unreadable(err)
			}
			log := newLogs(cmd.ErrOrStderr(), cfg)
			lastWords.Store(log.queue)
			slog.SetDefault(log.Logger)
			for _, w := range warnings {
				log.Warn("setting "+w.Text, "key", w.Key)
			}
			reachable(cfg, log.Logger)
			again := func() (*config.Config, error) {
				c, _, err := read()
				return c, err
			}
			return serve(cmd.Context(), settings{cfg, again, reloads()}, log, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&overrides, "override", nil, "a setting that wins over the file's, `key=value`")
	return cmd
}

// ownSettings lists what may be set here and not in Kafka.
func ownSettings() string {
	var b strings.Builder
	for _, k := range config.BrokerKeys {
		if strings.HasPrefix(k.Name, "kring.") {
			fmt.Fprintf(&b, "  %-28s %s", k.Name, k.Doc)
			if k.Default != "" {
				fmt.Fprintf(&b, " Default %s.", k.Default)
			}
			b.WriteByte('\n')
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// unreadable gives a file that cannot be read the status of wrong arguments.
func unreadable(err error) error {
	if statusOf(err) == exitFailed {
		return &failure{exitArguments, err}
	}
	return err
}

// advertised is what a client may be given to connect to.
func advertised(cfg *config.Config) string {
	var all []string
	for _, a := range cfg.Advertised {
		all = append(all, a.Name+"://"+hostPort(a))
	}
	return strings.Join(all, ",")
}

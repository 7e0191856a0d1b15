package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"kring/daemon/config"
)

func brokerCommand() *cobra.Command {
	var overrides []string
	var level string
	cmd := &cobra.Command{
		Use:   "broker [server.properties]",
		Short: "Run a broker until SIGTERM or Ctrl-C",
		Long: `Run a broker until SIGTERM or Ctrl-C; a second signal ends it at once.

Settings are those of Apache Kafka's server.properties and ours below. Without a file, data goes to ./kring-data (under
systemd, to its state directory) and the broker listens on port 9092 of every address. Settings that do nothing here are named
once at the start; one that cannot be ignored safely is refused.

` + ownSettings(),
		Args: atMost(1),
		Example: `  kring broker
  kring broker /etc/kring/server.properties
  kring broker --override listeners=PLAINTEXT://127.0.0.1:19092 --override log.dirs=/srv/kring`,
		RunE: func(cmd *cobra.Command, args []string) error {
			log, err := newLogger(cmd.ErrOrStderr(), level)
			if err != nil {
				return err
			}
			cfg, warnings, err := config.Load(first(args), overrides)
			if err != nil {
				return unreadable(err)
			}
			for _, w := range warnings {
				log.Warn("setting "+w.Text, "key", w.Key)
			}
			reachable(cfg, log)
			return serve(cmd.Context(), cfg, log, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&overrides, "override", nil, "a setting that wins over the file's, `key=value`")
	f.StringVar(&level, "log-level", "info", "debug, info, warn or error")
	completeFlag(cmd, "log-level", "debug", "info", "warn", "error")
	return cmd
}

// ownSettings lists what may be set here and not in Kafka.
func ownSettings() string {
	var b strings.Builder
	for _, k := range config.BrokerKeys {
		if strings.HasPrefix(k.Name, "kring.") {
			fmt.Fprintf(&b, "  %-17s %s Default %s.\n", k.Name, k.Doc, k.Default)
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

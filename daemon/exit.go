package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"kring/daemon/broker"
	"kring/daemon/config"
	"kring/metadata"
	"kring/ring"
)

// The exit statuses. Go itself ends with 2 after a panic, so 2 means a broken promise of ours and nothing else.
const (
	exitFailed      = 1
	exitArguments   = 3
	exitUnsupported = 4
	exitAddress     = 5
	exitLocked      = 6
	exitData        = 7
	exitKernel      = 8
	exitDisk        = 9
	exitKilled      = 130
)

var exitStatuses = []struct {
	status int
	text   string
}{
	{0, "done, or stopped as asked"},
	{exitFailed, "the work failed: no broker answered, or one answered with an error"},
	{2, "a broken promise inside kring; the trace on standard error belongs in a bug report"},
	{exitArguments, "wrong arguments, or a setting that is malformed"},
	{exitUnsupported, "a setting that is valid in Kafka and not supported here, such as process.roles"},
	{exitAddress, "an address cannot be listened on, most often because it is in use"},
	{exitLocked, "a log dir is in use by another broker"},
	{exitData, "a log dir holds what does not belong there or cannot be read or written"},
	{exitKernel, "the kernel refuses what io_uring loops need; kring probe names cause and cure"},
	{exitDisk, "every log dir, or the one the store lies in, has failed while the broker ran"},
	{exitKilled, "ended by a signal before the work, or by a second one before the stop, was done"},
}

// failure is an error that has a status of its own.
type failure struct {
	status int
	err    error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func wrong(format string, args ...any) error {
	return &failure{exitArguments, fmt.Errorf(format, args...)}
}

// statusOf is the exit status an error ends with.
func statusOf(err error) int {
	var (
		known       *failure
		malformed   *config.Malformed
		unsupported *config.Unsupported
		refused     *ring.Refused
	)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, context.Canceled):
		return exitKilled
	case errors.As(err, &known):
		return known.status
	case errors.As(err, &malformed):
		return exitArguments
	case errors.As(err, &unsupported):
		return exitUnsupported
	case errors.As(err, &refused):
		return exitKernel
	case errors.Is(err, broker.ErrLogDirs), errors.Is(err, metadata.ErrFenced):
		return exitDisk
	}
	return exitFailed
}

// oneLine keeps an error on the one line a refusal has.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

func exitTopic() *cobra.Command {
	var b strings.Builder
	b.WriteString("Exit statuses:\n\n")
	for _, s := range exitStatuses {
		fmt.Fprintf(&b, "  %3d  %s\n", s.status, s.text)
	}
	return &cobra.Command{Use: "exit-codes", Short: "What the exit statuses mean", Long: b.String()}
}

package main

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"sync"
)

// newLogger writes one line of key=value pairs for each event. Where systemd's journal reads standard error, the time is left out
// (the journal has it) and the line begins with the priority as sd-daemon(3) wants it.
func newLogger(out io.Writer, level string) (*slog.Logger, error) {
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil {
		return nil, wrong("--log-level %s is not valid; allowed: debug, info, warn or error", level)
	}
	o := &slog.HandlerOptions{Level: least}
	if os.Getenv("JOURNAL_STREAM") == "" {
		return slog.New(slog.NewTextHandler(out, o)), nil
	}
	o.ReplaceAttr = func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
			return slog.Attr{}
		}
		return a
	}
	j := &journal{out: out}
	of := func(priority string) slog.Handler { return slog.NewTextHandler(&prioritized{j, priority}, o) }
	return slog.New(&byLevel{of("<7>"), of("<6>"), of("<4>"), of("<3>")}), nil
}

// journal is where the lines of all priorities go, one at a time.
type journal struct {
	mu  sync.Mutex
	out io.Writer
	buf bytes.Buffer
}

type prioritized struct {
	to       *journal
	priority string
}

func (p *prioritized) Write(line []byte) (int, error) {
	p.to.mu.Lock()
	defer p.to.mu.Unlock()
	p.to.buf.Reset()
	p.to.buf.WriteString(p.priority)
	p.to.buf.Write(line)
	if _, err := p.to.out.Write(p.to.buf.Bytes()); err != nil {
		return 0, err
	}
	return len(line), nil
}

package main

import (
	"context"
	"log/slog"
)

// byLevel gives each event to the handler of its level: debug, info, warn, error.
type byLevel [4]slog.Handler

func (b *byLevel) of(l slog.Level) slog.Handler {
	switch {
	case l >= slog.LevelError:
		return b[3]
	case l >= slog.LevelWarn:
		return b[2]
	case l >= slog.LevelInfo:
		return b[1]
	}
	return b[0]
}

func (b *byLevel) Enabled(ctx context.Context, l slog.Level) bool { return b.of(l).Enabled(ctx, l) }

func (b *byLevel) Handle(ctx context.Context, r slog.Record) error {
	return b.of(r.Level).Handle(ctx, r)
}

func (b *byLevel) WithAttrs(attrs []slog.Attr) slog.Handler {
	return b.each(func(h slog.Handler) slog.Handler { return h.WithAttrs(attrs) })
}

func (b *byLevel) WithGroup(name string) slog.Handler {
	return b.each(func(h slog.Handler) slog.Handler { return h.WithGroup(name) })
}

func (b *byLevel) each(fn func(slog.Handler) slog.Handler) slog.Handler {
	var next byLevel
	for i, h := range b {
		next[i] = fn(h)
	}
	return &next
}

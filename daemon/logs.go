package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"kring/daemon/config"
)

// logs is the broker's log: lines are made where something happens and written by one goroutine, so that nobody waits for who
// reads them.
type logs struct {
	*slog.Logger
	level slog.LevelVar
	// configured is the setting the level was last taken from.
	configured string
	queue      *lineQueue
	counts     [4]atomic.Uint64 // lines by level: debug, info, warn, error
}

// newLogs makes the log of a broker. Where the journal reads out, each line begins with its priority as sd-daemon(3) wants it, and
// the time and level, which the journal keeps itself, are left out of text.
func newLogs(out io.Writer, c *config.Config) *logs {
	l := &logs{queue: newLineQueue(out)}
	l.configure(c)
	common := lineHandler{l: l, mu: new(sync.Mutex), buf: new(bytes.Buffer), journal: journalReads(out)}
	if c.LogFormat == "json" {
		common.json = slog.NewJSONHandler(common.buf, &slog.HandlerOptions{Level: slog.LevelDebug})
	}
	l.Logger = slog.New(&common)
	l.queue.lost = common.lost
	return l
}

// configure puts the settings of the log in force that may change at run time. A level that a client has set stays until the setting
// changes.
func (l *logs) configure(c *config.Config) {
	if c.LogLevel != l.configured {
		l.configured = c.LogLevel
		l.SetLevel(strings.ToUpper(c.LogLevel))
	}
}

// levelNames are Kafka's names of levels; slog has no names for the first and the last.
var levelNames = map[string]slog.Level{"TRACE": slog.LevelDebug - 4, "DEBUG": slog.LevelDebug, "INFO": slog.LevelInfo,
	"WARN": slog.LevelWarn, "ERROR": slog.LevelError, "FATAL": slog.LevelError + 4}

// Level is the least level that is logged, by Kafka's name of it.
func (l *logs) Level() string {
	for name, level := range levelNames {
		if level == l.level.Level() {
			return name
		}
	}
	return ""
}

// SetLevel sets it, if there is one of that name.
func (l *logs) SetLevel(name string) {
	if level, ok := levelNames[name]; ok {
		l.level.Set(level)
	}
}

// journalReads says whether JOURNAL_STREAM names this file: device and inode of the stream that systemd has connected.
func journalReads(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	var st syscall.Stat_t
	stream := os.Getenv("JOURNAL_STREAM")
	return stream != "" && syscall.Fstat(int(f.Fd()), &st) == nil && stream == fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}

// severity is a level's place in counts, its name, and its priority in the journal.
func severity(l slog.Level) (place int, name, priority string) {
	switch {
	case l >= slog.LevelError:
		return 3, "ERROR", "<3>"
	case l >= slog.LevelWarn:
		return 2, "WARN ", "<4>"
	case l >= slog.LevelInfo:
		return 1, "INFO ", "<6>"
	}
	return 0, "DEBUG", "<7>"
}

// lineTime is how a time is written for people.
const lineTime = "2006-01-02 15:04:05.000Z07:00"

// lineHandler makes a line of an event: time, level, what happened, and key=value pairs; or a JSON object.
type lineHandler struct {
	l       *logs
	journal bool
	json    slog.Handler // writes to buf; nil for text
	mu      *sync.Mutex  // guards buf
	buf     *bytes.Buffer

	pairs  string // of WithAttrs, made already
	prefix string // of WithGroup
}

// Enabled says whether events of a level are logged.
func (h *lineHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.l.level.Level() }

// Handle queues the event's line.
func (h *lineHandler) Handle(ctx context.Context, r slog.Record) error {
	place, _, _ := severity(r.Level)
	h.l.counts[place].Add(1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.line(ctx, r); err != nil {
		return err
	}
	h.l.queue.add(h.buf.Bytes())
	return nil
}

// line leaves the event's line in buf.
func (h *lineHandler) line(ctx context.Context, r slog.Record) error {
	b := h.buf
	b.Reset()
	_, name, priority := severity(r.Level)
	if h.journal {
		b.WriteString(priority)
	}
	if h.json != nil {
		return h.json.Handle(ctx, r)
	}
	if !h.journal {
		b.WriteString(r.Time.Format(lineTime))
		b.WriteByte(' ')
		b.WriteString(name)
		b.WriteByte(' ')
	}
	b.WriteString(oneLineOf(r.Message))
	b.WriteString(h.pairs)
	r.Attrs(func(a slog.Attr) bool {
		appendPair(b, h.prefix, a)
		return true
	})
	b.WriteByte('\n')
	return nil
}

// lost is the line that says how many lines are missing.
func (h *lineHandler) lost(n uint64, r slog.Record) []byte {
	r.Level, r.Message = slog.LevelWarn, "lines of the log are missing: nobody read them in time"
	r.AddAttrs(slog.Uint64("lines", n))
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.line(context.Background(), r) != nil {
		return nil
	}
	return bytes.Clone(h.buf.Bytes())
}

// WithAttrs is h with more pairs in each line.
func (h *lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	if h.json != nil {
		next.json = h.json.WithAttrs(attrs)
		return &next
	}
	var b bytes.Buffer
	for _, a := range attrs {
		appendPair(&b, h.prefix, a)
	}
	next.pairs += b.String()
	return &next
}

// WithGroup is h with a name before the keys that follow.
func (h *lineHandler) WithGroup(name string) slog.Handler {
	next := *h
	if h.json != nil {
		next.json = h.json.WithGroup(name)
		return &next
	}
	next.prefix += name + "."
	return &next
}

// appendPair writes " key=value".
func appendPair(b *bytes.Buffer, prefix string, a slog.Attr) {
	v := a.Value.Resolve()
	switch {
	case a.Equal(slog.Attr{}):
		return
	case v.Kind() == slog.KindGroup:
		if a.Key != "" {
			prefix += a.Key + "."
		}
		for _, inner := range v.Group() {
			appendPair(b, prefix, inner)
		}
		return
	}
	b.WriteByte(' ')
	b.WriteString(prefix)
	b.WriteString(a.Key)
	b.WriteByte('=')
	text := v.String()
	if v.Kind() == slog.KindTime {
		text = v.Time().Format(lineTime)
	}
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == '"' || r == '=' || r == 0x7f || r == 0xfffd }) {
		text = fmt.Sprintf("%q", text)
	}
	b.WriteString(text)
}

// oneLineOf keeps what cannot stand in a line out of it.
func oneLineOf(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fmt.Sprintf("%q", text)
	}
	return text
}

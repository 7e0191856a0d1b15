package segment

import (
	"log/slog"
	"maps"
	"path"
	"slices"
	"time"
)

// A full disk refuses every append to every log of a log dir. It is told of once when it begins, from time to time while it lasts, with
// how much was refused, and when it is over; by each loop for itself.

const (
	crampedAgain = time.Minute
	// crampedOver is how long nothing may have been refused: small appends find room where large ones do not.
	crampedOver = 2 * time.Second
)

// cramped is what a loop knows of a log dir without room.
type cramped struct {
	began, said, last time.Duration
	refused           int
}

// noRoom tells, not too often, that there was no room for a log of this dir, and that so many appends were refused for that.
func (l *Log) noRoom(what string, refused int, cause error) {
	f, dir, now := l.files, path.Dir(l.dir), l.loop.Now()
	c := f.cramped[dir]
	if c == nil {
		if f.cramped == nil {
			f.cramped = map[string]*cramped{}
		}
		c = &cramped{began: now, said: now - crampedAgain}
		f.cramped[dir] = c
	}
	c.refused += refused
	c.last = now
	if now-c.said < crampedAgain {
		return
	}
	c.said = now
	l.warn("no room: appends are refused until there is some, reads go on", "dir", dir, "what", what, "cause", cause, "refused", c.refused,
		"since", (now - c.began).Round(time.Second))
}

// roomAgain is called when something was written to a log of a loop that knows of dirs without room.
func (l *Log) roomAgain() {
	f, dir, now := l.files, path.Dir(l.dir), l.loop.Now()
	if c := f.cramped[dir]; c != nil && now-c.last >= crampedOver {
		delete(f.cramped, dir)
		l.logAt(slog.LevelInfo, "there is room again", "dir", dir, "refused", c.refused, "after", (now - c.began).Round(time.Second))
	}
}

// Cramped lists the log dirs in which there was no room lately for what was to be written to a log of this loop.
func (f *Files) Cramped() []string { return slices.Sorted(maps.Keys(f.cramped)) }

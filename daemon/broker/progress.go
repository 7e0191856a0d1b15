package broker

import (
	"slices"
	"time"

	"kring/ring"
	"kring/segment"
)

const (
	// progressEvery is how often the loops are asked how far they are, progressLine how often that is worth a line of the log.
	progressEvery = 500 * time.Millisecond
	progressLine  = 3 * time.Second
)

// Recovery is how far the loading of the logs is, by log dir.
type Recovery struct {
	Dirs []RecoveryDir
	// Segments and Bytes were read because they might have been torn; of a dir that was stopped cleanly that is nothing.
	Segments int
	Bytes    int64
	Took     time.Duration
}

// RecoveryDir is what is left to do in one log dir.
type RecoveryDir struct {
	Path string
	// Clean: the last stop was.
	Clean bool
	// LogsLeft and SegmentsLeft are Kafka's remainingLogsToRecover and remainingSegmentsToRecover: logs to be loaded, and segments to
	// be read of the logs at hand.
	LogsLeft, SegmentsLeft int
}

// progress tells of the loading of logs; it belongs to loop 0.
type progress struct {
	b           *Broker
	doing       string
	done, total int
	dirs        []RecoveryDir
	began, line time.Duration
	sum         segment.Progress
	task        *ring.Task
}

// newProgress has the work counted, and begins to tell of it.
func (b *Broker) newProgress(doing string, work [][]opening) *progress {
	p := &progress{b: b, doing: doing, began: b.loop.Now(), line: b.loop.Now()}
	for _, d := range b.dirs {
		p.dirs = append(p.dirs, RecoveryDir{Path: d.Path(), Clean: d.Clean()})
	}
	for _, s := range b.shards {
		s.recovering = make([]segment.Progress, len(b.dirs))
		for i := range work[s.id] {
			o := &work[s.id][i]
			at := p.dir(o.dir)
			o.options.Progress = &s.recovering[at]
			p.dirs[at].LogsLeft++
			p.total++
		}
	}
	p.tell()
	p.giveUp()
	p.task = ring.Go(b.loop, p.run)
	return p
}

func (p *progress) dir(d *dir) int { return slices.Index(p.b.dirs, d) }

// loaded counts a log.
func (p *progress) loaded(o *opening) {
	p.giveUp()
	p.done++
	p.dirs[p.dir(o.dir)].LogsLeft--
	p.tell()
}

// giveUp looks whether the start is to be given up, and lets the loops know.
func (p *progress) giveUp() {
	if p.b.givenUp || p.b.o.GiveUp == nil || !p.b.o.GiveUp() {
		return
	}
	p.b.givenUp = true
	for _, s := range p.b.shards {
		post(s.loop, func() {
			for i := range s.recovering {
				s.recovering[i].GivenUp = true
			}
		})
	}
}

func (p *progress) run(t *ring.Task) {
	for {
		t.Sleep(progressEvery)
		p.giveUp()
		if before := p.sum; p.ask(t) != before {
			p.tell() // who is not told takes the start for stuck
		}
		now := p.b.loop.Now()
		if now-p.line < progressLine {
			continue
		}
		p.line = now
		took := (now - p.began).Seconds()
		args := []any{"loaded", p.done, "of", p.total, "bytes", p.sum.Bytes, "bytes.per.second", int64(float64(p.sum.Bytes) / took)}
		for _, d := range p.dirs {
			args = append(args, "dir", d.Path, "logs.left", d.LogsLeft, "segments.left", d.SegmentsLeft)
		}
		p.b.log.Info(p.doing, args...)
	}
}

// ask sums up what the loops have counted so far.
func (p *progress) ask(t *ring.Task) segment.Progress {
	sums := make([]segment.Progress, len(p.dirs))
	p.b.each(t, func(s *shard, done func()) {
		counted := slices.Clone(s.recovering)
		post(p.b.loop, func() {
			for i, c := range counted {
				sums[i].Left += c.Left
				sums[i].Segments += c.Segments
				sums[i].Bytes += c.Bytes
			}
		})
		done()
	})
	p.sum = segment.Progress{}
	for i, c := range sums {
		p.dirs[i].SegmentsLeft = c.Left
		p.sum.Segments += c.Segments
		p.sum.Bytes += c.Bytes
	}
	return p.sum
}

func (p *progress) tell() {
	if told := p.b.o.Told; told != nil {
		told(Stage{Doing: p.doing, Done: p.done, Total: p.total, Recovery: &Recovery{
			Dirs: slices.Clone(p.dirs), Segments: p.sum.Segments, Bytes: p.sum.Bytes, Took: p.b.loop.Now() - p.began}})
	}
}

// end tells the sum of it.
func (p *progress) end(t *ring.Task) {
	p.task.Stop()
	p.ask(t)
	p.tell()
}

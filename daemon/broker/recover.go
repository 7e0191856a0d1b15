package broker

import (
	"errors"
	"maps"
	"strings"
	"time"

	"kring/metadata"
	"kring/ring"
	"kring/segment"
)

// recover opens the logs found in the log dirs, each on its loop. One that cannot be opened is told to the controller when it
// names the partition: the others do not suffer.
func (b *Broker) recover(t *ring.Task, ids map[string]metadata.TopicID, configs map[string]metadata.Config) {
	began := b.loop.Now()
	work := make([][]opening, len(b.shards))
	total := 0
	var strangers names
	settings := b.settingsByTopic()
	for _, d := range b.dirs {
		for _, p := range d.Partitions() {
			_, known := ids[p.Topic]
			strangers.addIf(!known, p)
			if other := b.placed[p]; other != nil {
				b.log.Error("partition lies in two log dirs, the second is left alone", "topic", p.Topic, "partition", p.Index,
					"first", other.Path(), "second", d.Path())
				continue
			}
			b.occupy(p, d)
			s := b.shardOf(p)
			o := opening{at: p, dir: d, options: d.Options(p)}
			o.options.Config = settings(p.Topic, configs[p.Topic]).log
			work[s.id] = append(work[s.id], o)
			total++
		}
	}
	maps.Copy(b.configs, configs)
	for _, d := range b.dirs {
		d.DeleteLeftovers(b.static.FileDeleteDelay.Milliseconds())
	}
	if total == 0 {
		return
	}
	b.tellStrangers(&strangers)
	parallel := max(b.static.RecoveryThreads*len(b.dirs), 1)
	b.log.Info("loading logs", "partitions", total)
	doing := "loading logs"
	for _, d := range b.dirs {
		if d.Suspect() {
			b.log.Warn("the log dir had failed before the last stop: what is recovered is written anew", "dir", d.Path())
		}
		if !d.Clean() && len(d.Partitions()) > 0 {
			doing = "recovering logs"
			b.log.Info("the last stop was not clean: logs are recovered", "dir", d.Path(), "partitions", len(d.Partitions()))
		}
	}
	p := b.newProgress(doing, work)
	b.each(t, func(s *shard, done func()) {
		s.open(work[s.id], parallel, func(o *opening) {
			post(b.loop, func() {
				p.loaded(o)
				if o.err != nil && !errors.Is(o.err, segment.ErrGivenUp) {
					b.openFailed(o, o.err)
				}
			})
		}, done)
	})
	p.end(t)
	b.unmade.tell(b)
	if b.givenUp {
		return
	}
	b.failLate(t)
	b.trust(t)
	b.tellOpenTxns(t, work)
	b.log.Info("logs loaded", "partitions", total, "recovered.segments", p.sum.Segments, "recovered.bytes", p.sum.Bytes,
		"took", (b.loop.Now() - began).Round(time.Millisecond))
}

// tellStrangers warns of logs of topics that are not there.
func (b *Broker) tellStrangers(strangers *names) {
	if strangers.count > 0 {
		b.log.Warn("log dirs hold partitions of topics that the cluster's state does not know: they are kept, and not served. If the state "+
			"was lost, bring it back (kring store import, or a copy of kring-store-*); if the topics were deleted, remove the directories",
			"partitions", strangers.count, "names", strangers.String())
	}
}

// names are partitions to be told of in one line: the first few, and how many.
type names struct {
	first []string
	count int
}

func (n *names) addIf(told bool, p segment.Partition) {
	if !told {
		return
	}
	if n.count++; len(n.first) < 10 {
		n.first = append(n.first, p.String())
	}
}

func (n *names) String() string {
	if n.count > len(n.first) {
		return strings.Join(n.first, " ") + " and others"
	}
	return strings.Join(n.first, " ")
}

// trust takes the mark of a failure from log dirs of which every log was opened, and so written anew.
func (b *Broker) trust(t *ring.Task) {
	for _, d := range b.dirs {
		if d.failed != nil || d.spoiled {
			continue
		}
		if err := d.Trust(t); err != nil {
			b.log.Warn("the mark of a failure stays in a log dir", "dir", d.Path(), "cause", err)
		}
	}
}

// opening is one log to be opened.
type opening struct {
	at      segment.Partition
	dir     *dir
	options segment.Options
	fresh   bool // what checkpoints say under its name is another's
	err     error
	cause   error // of the last try that found no room
}

// open opens logs of this shard, parallel at a time; opened is called after each, finished last, both here.
func (s *shard) open(work []opening, parallel int, opened func(*opening), finished func()) {
	if len(work) == 0 {
		finished()
		return
	}
	all := make([]segment.Options, len(work))
	for i := range work {
		work[i].options.Files, work[i].options.Log = s.files, s.b.log
		all[i] = work[i].options
	}
	segment.OpenAll(s.loop, all, parallel, func(i int, l *segment.Log, err error) {
		o := &work[i]
		if o.err = err; err == nil {
			s.add(&replica{Partition: o.at, dir: o.dir, log: l})
		}
		opened(o)
	}, finished)
}

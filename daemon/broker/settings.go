package broker

import (
	"strings"

	"kring/daemon/api"
	"kring/daemon/config"
	"kring/metadata"
	"kring/replication"
	"kring/segment"
)

// settings is what one topic's configuration says to its logs and its replication.
type settings struct {
	log  segment.Config
	repl replication.Config
}

// offsetsRoll is how large the active segment of a partition of offsets gets before it ends, unless more is clean already.
const offsetsRoll = 1 << 20

// settingsOf computes them from a topic's own settings and the broker's.
func (b *Broker) settingsOf(topic string, own metadata.Config) settings {
	c := b.node.Config()
	t := c.Topic(overrides(own))
	roll := int64(0)
	if t.Compact {
		t.SegmentMs = min(t.SegmentMs, t.MaxCompactionLagMs)
		if topic == api.OffsetsTopic && c.CleanerEnabled {
			roll = offsetsRoll
		}
	}
	return settings{
		log: segment.Config{
			SegmentBytes: int64(t.SegmentBytes), SegmentMs: t.SegmentMs, SegmentJitterMs: t.SegmentJitterMs,
			IndexIntervalBytes: int64(t.IndexIntervalBytes), IndexMaxBytes: int64(t.SegmentIndexBytes),
			RetentionMs: t.RetentionMs, RetentionBytes: t.RetentionBytes, DeleteRetained: t.Delete,
			FlushMessages: t.FlushMessages, FlushMs: t.FlushMs, FileDeleteDelayMs: t.FileDeleteDelayMs,
			ProducerExpireMs: c.ProducerIDExpiration.Milliseconds(), Preallocate: t.Preallocate,
			Compact: t.Compact, DeleteRetentionMs: t.DeleteRetentionMs, MinDirtyRatio: t.MinCleanableRatio,
			MinLagMs: t.MinCompactionLagMs, MaxLagMs: t.MaxCompactionLagMs, RollDirtyBytes: roll,
		},
		repl: replication.Config{
			MinISR: int(t.MinInSyncReplicas), MaxMessageBytes: int(t.MaxMessageBytes), SegmentBytes: int(t.SegmentBytes),
			LogAppendTime: t.LogAppendTime, Compacted: t.Compact,
			TimestampBeforeMaxMs: t.TimestampBeforeMaxMs, TimestampAfterMaxMs: t.TimestampAfterMaxMs,
		},
	}
}

// settingsByTopic is settingsOf for many partitions, of which those of a topic come together and have the same settings.
func (b *Broker) settingsByTopic() func(topic string, own metadata.Config) *settings {
	last, of := settings{}, ""
	return func(topic string, own metadata.Config) *settings {
		if topic != of {
			last, of = b.settingsOf(topic, own), topic
		}
		return &last
	}
}

func overrides(c metadata.Config) map[string]string {
	m := make(map[string]string, len(c))
	for _, s := range c {
		m[s.Name] = s.Value
	}
	return m
}

// dynamic lays the store's settings for this broker, and for all, over the static ones.
func (b *Broker) dynamic(own, all metadata.Config) {
	c, bad := b.static.With(overrides(own), overrides(all))
	for _, err := range bad {
		b.log.Warn("dynamic setting left out", "error", err)
	}
	b.node.SetConfig(c)
	b.limit(c)
	b.cleaner.reconfigured(c)
	if b.o.Settings != nil {
		b.o.Settings(c)
	}
}

// Reload takes what may change at run time from settings that were read anew, and leaves the rest for the next start. It is
// called on loop 0.
func (b *Broker) Reload(read *config.Config) error {
	next, changed, fixed, err := b.static.Reload(read)
	if err != nil {
		return err
	}
	for _, name := range fixed {
		b.log.Warn("setting has changed and waits for a restart", "key", name)
	}
	b.log.Info("settings read again", "changed", strings.Join(changed, ","))
	if len(changed) == 0 || b.image == nil {
		return nil
	}
	b.static = next
	b.dynamic(b.image.BrokerConfig(b.node.ID), b.image.BrokerConfig(metadata.NoBroker))
	for t := range b.image.Topics() {
		b.apply(t)
	}
	return nil
}

// onImage publishes a picture and puts changed settings in force. It looks at the topics that changed only, unless the broker's own
// settings did.
func (b *Broker) onImage(m *metadata.Image) {
	old, first, all := b.image, b.image == nil, false
	if first {
		old = metadata.NewImage()
	} else if !(old.BrokerConfig(b.node.ID).Equal(m.BrokerConfig(b.node.ID)) &&
		old.BrokerConfig(metadata.NoBroker).Equal(m.BrokerConfig(metadata.NoBroker))) {
		b.dynamic(m.BrokerConfig(b.node.ID), m.BrokerConfig(metadata.NoBroker))
		all = true
	}
	b.image = m
	b.node.SetImage(m)
	for was, is := range m.Changes(old) {
		if was != nil && (is == nil || is.ID != was.ID) {
			b.topicDeleted(was.Name)
		}
		if is == nil {
			delete(b.configs, was.Name)
			continue
		}
		if !first && (was == nil || !was.Config.Equal(is.Config)) {
			b.tellIdle(is.Name, is.Config)
		}
		if set, known := b.configs[is.Name]; !known || !set.Equal(is.Config) {
			b.apply(is)
		}
	}
	if all {
		for t := range m.Topics() {
			b.apply(t)
		}
	}
}

// apply puts a topic's settings in force.
func (b *Broker) apply(t *metadata.Topic) {
	b.configs[t.Name] = t.Config
	b.configure(t.Name, b.settingsOf(t.Name, t.Config))
}

// tellIdle warns about the settings of a topic that are kept and shown and do nothing yet: once for each key, as there may be many
// topics. Nobody chose those of a topic that belongs to brokers themselves.
func (b *Broker) tellIdle(topic string, c metadata.Config) {
	if topic == api.OffsetsTopic || topic == api.TransactionsTopic {
		return
	}
	for _, name := range config.Idle(overrides(c)) {
		if !b.warned[name] {
			b.warned[name] = true
			b.log.Warn("topic setting does not act yet; told once", "key", name, "topic", topic)
		}
	}
}

// configure tells the logs of a topic, on all loops, of their settings.
func (b *Broker) configure(topic string, c settings) {
	for _, s := range b.shards {
		post(s.loop, func() {
			t := s.ctx.Topic([]byte(topic))
			if t == nil {
				return
			}
			for i, p := range t.Partitions {
				if r := s.byName[segment.Partition{Topic: topic, Index: int32(i)}]; p != nil && r != nil && r.part == p {
					s.set(r, c)
				}
			}
		})
	}
}

// set puts settings in force in a replica that has its partition.
func (s *shard) set(r *replica, c settings) {
	r.log.SetConfig(c.log)
	r.part.SetConfig(c.repl)
	s.classify(r)
}

package broker

import (
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

// settingsOf computes them from a topic's own settings and the broker's.
func (b *Broker) settingsOf(own metadata.Config) settings {
	c := b.node.Config()
	t := c.Topic(overrides(own))
	return settings{
		log: segment.Config{
			SegmentBytes: int64(t.SegmentBytes), SegmentMs: t.SegmentMs, SegmentJitterMs: t.SegmentJitterMs,
			IndexIntervalBytes: int64(t.IndexIntervalBytes), IndexMaxBytes: int64(t.SegmentIndexBytes),
			RetentionMs: t.RetentionMs, RetentionBytes: t.RetentionBytes, DeleteRetained: t.Delete,
			FlushMessages: t.FlushMessages, FlushMs: t.FlushMs, FileDeleteDelayMs: t.FileDeleteDelayMs,
			ProducerExpireMs: c.ProducerIDExpiration.Milliseconds(), Preallocate: t.Preallocate,
		},
		repl: replication.Config{
			MinISR: int(t.MinInSyncReplicas), MaxMessageBytes: int(t.MaxMessageBytes), SegmentBytes: int(t.SegmentBytes),
			LogAppendTime: t.LogAppendTime, Compacted: t.Compact,
			TimestampBeforeMaxMs: t.TimestampBeforeMaxMs, TimestampAfterMaxMs: t.TimestampAfterMaxMs,
		},
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
}

// onImage publishes a picture and puts changed settings in force.
func (b *Broker) onImage(m *metadata.Image) {
	old := b.image
	b.image = m
	all := old == nil
	if old != nil && !(old.BrokerConfig(b.node.ID).Equal(m.BrokerConfig(b.node.ID)) &&
		old.BrokerConfig(metadata.NoBroker).Equal(m.BrokerConfig(metadata.NoBroker))) {
		b.dynamic(m.BrokerConfig(b.node.ID), m.BrokerConfig(metadata.NoBroker))
		all = true
	}
	b.node.SetImage(m)
	for t := range m.Topics() {
		if old != nil && old.Topic(t.Name) == t && !all {
			continue
		}
		if old != nil && (old.Topic(t.Name) == nil || !old.Topic(t.Name).Config.Equal(t.Config)) {
			b.tellIdle(t.Name, t.Config)
		}
		was, known := b.configs[t.Name]
		if all || !known || !was.Equal(t.Config) {
			b.configs[t.Name] = t.Config
			b.configure(t.Name, b.settingsOf(t.Config))
		}
	}
	if old != nil {
		for t := range old.Topics() {
			if m.Topic(t.Name) == nil {
				delete(b.configs, t.Name)
			}
		}
	}
}

// tellIdle warns about the settings of a topic that are kept and shown and do nothing yet.
func (b *Broker) tellIdle(topic string, c metadata.Config) {
	for _, name := range config.Idle(overrides(c)) {
		b.log.Warn("topic setting does not act yet", "topic", topic, "key", name)
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
			for _, p := range t.Partitions {
				if p != nil {
					p.Log().SetConfig(c.log)
					p.SetConfig(c.repl)
				}
			}
		})
	}
}

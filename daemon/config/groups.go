package config

import (
	"strconv"
	"time"
)

// Groups is what the group coordinator and the topic of its offsets are set to.
type Groups struct {
	// MinSessionMs and MaxSessionMs bound the session timeout of members: group.min.session.timeout.ms and .max.
	MinSessionMs, MaxSessionMs int32
	// InitialDelayMs is group.initial.rebalance.delay.ms, MaxSize group.max.size.
	InitialDelayMs, MaxSize int32
	// MetadataMax is offset.metadata.max.bytes.
	MetadataMax int32
	// Retention is offsets.retention.minutes, CheckInterval offsets.retention.check.interval.ms.
	Retention, CheckInterval time.Duration
	// CommitAcks is offsets.commit.required.acks, CommitTimeout offsets.commit.timeout.ms.
	CommitAcks    int16
	CommitTimeout time.Duration
	// LoadBuffer is offsets.load.buffer.size.
	LoadBuffer int
	// Codec is offsets.topic.compression.codec, by Kafka's number.
	Codec uint8
	// SegmentBytes is offsets.topic.segment.bytes, Partitions offsets.topic.num.partitions.
	SegmentBytes, Partitions int32
	// ReplicationFactor is offsets.topic.replication.factor; Fewer says that it was not set: fewer replicas will do where there are
	// not so many brokers.
	ReplicationFactor int16
	Fewer             bool
}

func (b *builder) groups() {
	g := &b.c.Groups
	g.MinSessionMs, g.MaxSessionMs = b.int32("group.min.session.timeout.ms"), b.int32("group.max.session.timeout.ms")
	g.InitialDelayMs, g.MaxSize = b.int32("group.initial.rebalance.delay.ms"), b.int32("group.max.size")
	g.MetadataMax = b.int32("offset.metadata.max.bytes")
	g.Retention = millis(b.get("offsets.retention.minutes").n * 60_000)
	g.CheckInterval = b.millis("offsets.retention.check.interval.ms")
	g.CommitAcks, g.CommitTimeout = int16(b.get("offsets.commit.required.acks").n), b.millis("offsets.commit.timeout.ms")
	g.LoadBuffer = int(b.get("offsets.load.buffer.size").n)
	codec := b.get("offsets.topic.compression.codec").n
	if codec < 0 || codec > 4 {
		b.bad("offsets.topic.compression.codec", strconv.FormatInt(codec, 10), "allowed: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd")
	}
	g.Codec = uint8(codec)
	g.SegmentBytes, g.Partitions = b.int32("offsets.topic.segment.bytes"), b.int32("offsets.topic.num.partitions")
	g.ReplicationFactor = int16(b.get("offsets.topic.replication.factor").n)
	_, source := b.lookup("offsets.topic.replication.factor")
	g.Fewer = source == SourceDefault
}

package config

import (
	"math"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// layers are the places a setting may stand, first wins: dynamic for this broker, dynamic for all, the file with overrides.
type layers struct {
	broker, all, static map[string]string
}

func (l *layers) lookup(name string) (string, Source) {
	if v, ok := l.broker[name]; ok {
		return v, SourceBroker
	}
	if v, ok := l.all[name]; ok {
		return v, SourceDefaultBroker
	}
	if v, ok := l.static[name]; ok {
		return v, SourceStatic
	}
	return "", SourceDefault
}

// get is the effective value of a key, which is known to be valid; ok is false where it is not set and has no default.
func (l *layers) get(name string) (p parsed, ok bool) {
	k := lookupDynamic(name)
	value, source := l.lookup(name)
	if source == SourceDefault {
		if value = k.Default; value == null {
			return parsed{}, false
		}
	}
	p, err := parse(k.Type, value, k.Allowed)
	return p, err == nil
}

// unit is a key and how many milliseconds its 1 is.
type unit struct {
	name string
	ms   int64
}

func (u unit) scale(n int64) int64 {
	if n < 0 {
		return -1
	}
	if n > math.MaxInt64/u.ms {
		return math.MaxInt64
	}
	return n * u.ms
}

// The settings that may be given in several units, the finest first.
var (
	retentionTime = []unit{{"log.retention.ms", 1}, {"log.retention.minutes", 60_000}, {"log.retention.hours", 3_600_000}}
	rollTime      = []unit{{"log.roll.ms", 1}, {"log.roll.hours", 3_600_000}}
	rollJitter    = []unit{{"log.roll.jitter.ms", 1}, {"log.roll.jitter.hours", 3_600_000}}
	flushTime     = []unit{{"log.flush.interval.ms", 1}, {"log.flush.scheduler.interval.ms", 1}}
)

// builder fills a Config; the first error stays.
type builder struct {
	layers
	c   *Config
	err error
}

func build(static, broker, all map[string]string) (*Config, error) {
	b := &builder{layers: layers{broker, all, static}, c: &Config{}}
	b.c.layers = &b.layers
	b.identity()
	b.watching()
	b.dirs()
	b.listeners()
	b.connections()
	b.logs()
	b.cleaner()
	b.groups()
	b.whole()
	return b.c, b.err
}

func (b *builder) get(name string) parsed {
	p, _ := b.layers.get(name)
	return p
}

func (b *builder) int32(name string) int32 { return int32(b.get(name).n) }

func (b *builder) millis(name string) time.Duration { return millis(b.get(name).n) }

// millis makes a duration; what a Duration cannot hold becomes its largest.
func millis(ms int64) time.Duration {
	if ms > int64(math.MaxInt64/time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}

func (b *builder) bad(key, value, why string) {
	if b.err == nil {
		b.err = &Malformed{key, value, why}
	}
}

func (b *builder) identity() {
	c := b.c
	id := b.get("broker.id").n
	if node := b.get("node.id").n; node != id {
		b.bad("node.id", strconv.FormatInt(node, 10), "allowed: the same as broker.id, or not set")
	}
	c.BrokerID, c.MaxReservedBrokerID = int32(id), b.int32("reserved.broker.max.id")
	text := strconv.FormatInt(id, 10)
	if b.get("broker.id.generation.enable").yes {
		if id < -1 || id > int64(c.MaxReservedBrokerID) {
			b.bad("broker.id", text, "allowed: from -1 (generated) to reserved.broker.max.id")
		}
	} else if id < 0 {
		b.bad("broker.id", text, "allowed: at least 0, since broker.id.generation.enable is false")
	}
	c.Rack = b.get("broker.rack").s
	c.Loops, c.WritePath = int(b.get("kring.loops").n), b.get("kring.write.path").s
}

// watching is what a person or a program sees of the broker.
func (b *builder) watching() {
	c := b.c
	c.LogLevel, c.LogFormat = b.get("kring.log.level").s, b.get("kring.log.format").s
	c.MetricsAddress, c.MetricsPartitions = b.get("kring.metrics.address").s, int(b.get("kring.metrics.partitions.max").n)
	if c.MetricsAddress == "" {
		return
	}
	_, port, err := net.SplitHostPort(c.MetricsAddress)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n > math.MaxUint16 {
		b.bad("kring.metrics.address", c.MetricsAddress, "allowed: host:port, or nothing for none")
	}
}

func (b *builder) dirs() {
	key, value := "log.dirs", ""
	if p, ok := b.layers.get("log.dirs"); ok {
		value = p.s
	} else {
		key, value = "log.dir", b.get("log.dir").s
	}
	for dir := range strings.SplitSeq(value, ",") {
		if dir = strings.TrimSpace(dir); dir != "" {
			b.c.LogDirs = append(b.c.LogDirs, dir)
		}
	}
	if len(b.c.LogDirs) == 0 {
		b.bad(key, value, "allowed: at least one directory")
	}
	for i, d := range b.c.LogDirs {
		for _, o := range b.c.LogDirs[:i] {
			if strings.TrimRight(d, "/") == strings.TrimRight(o, "/") {
				b.bad(key, value, "each directory may stand once")
			}
		}
	}
}

func (b *builder) connections() {
	c := b.c
	c.RequestMax = b.int32("socket.request.max.bytes")
	c.SendBuffer, c.ReceiveBuffer = b.int32("socket.send.buffer.bytes"), b.int32("socket.receive.buffer.bytes")
	c.QueuedBytes = b.get("queued.max.request.bytes").n
	if c.QueuedBytes > 0 && c.QueuedBytes < int64(c.RequestMax) {
		b.bad("queued.max.request.bytes", strconv.FormatInt(c.QueuedBytes, 10), "allowed: at least socket.request.max.bytes, or -1")
	}
	c.MaxConnections = b.int32("max.connections")
	c.MaxConnectionsPerIP = b.int32("max.connections.per.ip")
	c.ConnectionsMaxIdle = b.millis("connections.max.idle.ms")
	c.RequestTimeout = b.millis("request.timeout.ms")
	const key = "max.connections.per.ip.overrides"
	value := b.get(key).s
	for entry := range strings.SplitSeq(value, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		i := strings.LastIndexByte(entry, ':')
		n, err := strconv.ParseInt(strings.TrimSpace(entry[i+1:]), 10, 32)
		if i <= 0 || err != nil || n < 0 {
			b.bad(key, value, "allowed: address:count, separated by commas")
			return
		}
		host := strings.Trim(strings.TrimSpace(entry[:i]), "[]")
		address, err := netip.ParseAddr(host)
		if err != nil {
			b.bad(key, value, "allowed: addresses (names are not looked up), such as 10.0.0.1:5")
			return
		}
		if c.ConnectionsByIP == nil {
			c.ConnectionsByIP = map[netip.Addr]int32{}
		}
		c.ConnectionsByIP[address.Unmap()] = int32(n)
	}
	if c.MaxConnectionsPerIP == 0 && len(c.ConnectionsByIP) == 0 {
		b.bad("max.connections.per.ip", "0", "allowed: at least 1 unless max.connections.per.ip.overrides lets somebody in")
	}
}

func (b *builder) logs() {
	c := b.c
	c.FetchMaxBytes = b.int32("fetch.max.bytes")
	c.FetchSessions = b.int32("max.incremental.fetch.session.cache.slots")
	c.AutoCreateTopics, c.DeleteTopics = b.get("auto.create.topics.enable").yes, b.get("delete.topic.enable").yes
	c.NumPartitions = b.int32("num.partitions")
	rf := b.get("default.replication.factor").n
	if rf < 1 || rf > math.MaxInt16 {
		b.bad("default.replication.factor", strconv.FormatInt(rf, 10), "allowed: from 1 to 32767")
	}
	c.ReplicationFactor = int16(rf)
	c.TransactionsPartitions = b.int32("transaction.state.log.num.partitions")
	c.RecoveryThreads = int(b.get("num.recovery.threads.per.data.dir").n)
	c.RetentionCheckInterval = b.millis("log.retention.check.interval.ms")
	c.FileDeleteDelay = b.millis("log.segment.delete.delay.ms")
	c.RecoveryPointInterval = b.millis("log.flush.offset.checkpoint.interval.ms")
	c.LogStartInterval = b.millis("log.flush.start.offset.checkpoint.interval.ms")
	c.HighWatermarkInterval = b.millis("replica.high.watermark.checkpoint.interval.ms")
	c.ProducerIDExpiration = b.millis("producer.id.expiration.ms")
	c.ProducerCheckInterval = b.millis("producer.id.expiration.check.interval.ms")
	c.VerifyTransactions = b.get("transaction.partition.verification.enable").yes
}

func (b *builder) cleaner() {
	c := b.c
	c.CleanerEnabled = b.get("log.cleaner.enable").yes
	c.CleanerThreads = int(b.get("log.cleaner.threads").n)
	c.CleanerBackoff = b.millis("log.cleaner.backoff.ms")
	c.CleanerDedupeBytes = b.get("log.cleaner.dedupe.buffer.size").n
	c.CleanerLoadFactor = b.get("log.cleaner.io.buffer.load.factor").f
	c.CleanerBufferBytes = int(b.get("log.cleaner.io.buffer.size").n)
	c.CleanerBytesPerSecond = b.get("log.cleaner.io.max.bytes.per.second").f
}

// whole checks what depends on more than one key, as KafkaConfig.validateValues does.
func (b *builder) whole() {
	for _, u := range retentionTime {
		if p, ok := b.layers.get(u.name); ok && p.n != -1 && p.n < 1 {
			b.bad(u.name, p.s, "allowed: at least 1, or -1 for ever")
		}
	}
	for _, u := range [][]unit{rollTime, rollJitter, flushTime} {
		low := int64(1)
		if u[0].name != "log.roll.ms" {
			low = 0
		}
		if p, ok := b.layers.get(u[0].name); ok && p.n < low {
			b.bad(u[0].name, p.s, "allowed: at least "+strconv.FormatInt(low, 10))
		}
	}
	if wait, lag := b.get("replica.fetch.wait.max.ms").n, b.get("replica.lag.time.max.ms").n; wait > lag {
		b.bad("replica.fetch.wait.max.ms", strconv.FormatInt(wait, 10), "allowed: at most replica.lag.time.max.ms")
	}
	acks, rf := b.get("offsets.commit.required.acks").n, b.get("offsets.topic.replication.factor").n
	if acks < -1 || acks > rf {
		b.bad("offsets.commit.required.acks", strconv.FormatInt(acks, 10), "allowed: from -1 to offsets.topic.replication.factor")
	}
	if low, high := b.get("log.cleaner.min.compaction.lag.ms").n, b.get("log.cleaner.max.compaction.lag.ms").n; low > high {
		b.bad("log.cleaner.min.compaction.lag.ms", strconv.FormatInt(low, 10), "allowed: at most log.cleaner.max.compaction.lag.ms")
	}
	if b.get("log.cleaner.enable").yes && b.get("log.cleaner.dedupe.buffer.size").n/max(1, b.get("log.cleaner.threads").n) <= 1<<20 {
		b.bad("log.cleaner.dedupe.buffer.size", b.get("log.cleaner.dedupe.buffer.size").s, "allowed: more than 1048576 for each cleaner thread")
	}
}

package config

import (
	"errors"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// acting is, for every broker key that acts, a setting and what it must change. That the rooms obey is shown by their own tests.
var acting = map[string]struct {
	value string
	seen  func(*Config) bool
}{
	"advertised.listeners":                {"PLAINTEXT://a:1", func(c *Config) bool { return c.Advertised[0].Host == "a" && c.Listeners[0].Host == "" }},
	"auto.create.topics.enable":           {"false", func(c *Config) bool { return !c.AutoCreateTopics }},
	"broker.id":                           {"7", func(c *Config) bool { return c.BrokerID == 7 }},
	"broker.id.generation.enable":         {"false", nil}, // TestBadSettings
	"broker.rack":                         {"r1", func(c *Config) bool { return c.Rack == "r1" }},
	"connections.max.idle.ms":             {"5", func(c *Config) bool { return c.ConnectionsMaxIdle == 5*time.Millisecond }},
	"default.replication.factor":          {"2", func(c *Config) bool { return c.ReplicationFactor == 2 }},
	"socket.receive.buffer.bytes":         {"9", func(c *Config) bool { return c.ReceiveBuffer == 9 }},
	"socket.send.buffer.bytes":            {"-1", func(c *Config) bool { return c.SendBuffer == -1 }},
	"delete.topic.enable":                 {"FALSE", func(c *Config) bool { return !c.DeleteTopics }},
	"fetch.max.bytes":                     {"1024", func(c *Config) bool { return c.FetchMaxBytes == 1024 }},
	"kring.loops":                         {"3", func(c *Config) bool { return c.Loops == 3 }},
	"kring.log.format":                    {"json", func(c *Config) bool { return c.LogFormat == "json" }},
	"kring.log.level":                     {"debug", func(c *Config) bool { return c.LogLevel == "debug" }},
	"kring.metrics.address":               {"[::1]:9404", func(c *Config) bool { return c.MetricsAddress == "[::1]:9404" }},
	"kring.metrics.partitions.max":        {"7", func(c *Config) bool { return c.MetricsPartitions == 7 }},
	"kring.write.path":                    {"pwrite", func(c *Config) bool { return c.WritePath == "pwrite" }},
	"listener.security.protocol.map":      {"PLAINTEXT:PLAINTEXT", func(c *Config) bool { return c.Listeners[0].Protocol == "PLAINTEXT" }},
	"listeners":                           {"PLAINTEXT://h:2", func(c *Config) bool { return c.Listeners[0] == Listener{"PLAINTEXT", "PLAINTEXT", "h", 2} }},
	"log.cleanup.policy":                  {"compact,delete", func(c *Config) bool { t := c.Topic(nil); return t.Compact && t.Delete }},
	"log.cleaner.backoff.ms":              {"5", func(c *Config) bool { return c.CleanerBackoff == 5*time.Millisecond }},
	"log.cleaner.dedupe.buffer.size":      {"2000000", func(c *Config) bool { return c.CleanerDedupeBytes == 2_000_000 }},
	"log.cleaner.delete.retention.ms":     {"5", func(c *Config) bool { return c.Topic(nil).DeleteRetentionMs == 5 }},
	"log.cleaner.enable":                  {"false", func(c *Config) bool { return !c.CleanerEnabled }},
	"log.cleaner.io.buffer.load.factor":   {"0.5", func(c *Config) bool { return c.CleanerLoadFactor == 0.5 }},
	"log.cleaner.io.buffer.size":          {"4096", func(c *Config) bool { return c.CleanerBufferBytes == 4096 }},
	"log.cleaner.io.max.bytes.per.second": {"1000", func(c *Config) bool { return c.CleanerBytesPerSecond == 1000 }},
	"log.cleaner.max.compaction.lag.ms":   {"5", func(c *Config) bool { return c.Topic(nil).MaxCompactionLagMs == 5 }},
	"log.cleaner.min.cleanable.ratio":     {"0.1", func(c *Config) bool { return c.Topic(nil).MinCleanableRatio == 0.1 }},
	"log.cleaner.min.compaction.lag.ms":   {"5", func(c *Config) bool { return c.Topic(nil).MinCompactionLagMs == 5 }},
	"log.cleaner.threads":                 {"2", func(c *Config) bool { return c.CleanerThreads == 2 }},
	"log.dir":                             {"/d", func(c *Config) bool { return slices.Equal(c.LogDirs, []string{"/d"}) }},
	"log.dirs":                            {"/a, /b", func(c *Config) bool { return slices.Equal(c.LogDirs, []string{"/a", "/b"}) }},
	"log.flush.interval.messages":         {"1", func(c *Config) bool { return c.Topic(nil).FlushMessages == 1 }},
	"log.flush.interval.ms":               {"9", func(c *Config) bool { return c.Topic(nil).FlushMs == 9 }},
	"log.index.interval.bytes":            {"10", func(c *Config) bool { return c.Topic(nil).IndexIntervalBytes == 10 }},
	"log.index.size.max.bytes":            {"400", func(c *Config) bool { return c.Topic(nil).SegmentIndexBytes == 400 }},
	"log.message.timestamp.type":          {"LogAppendTime", func(c *Config) bool { return c.Topic(nil).LogAppendTime }},
	"log.preallocate":                     {"true", func(c *Config) bool { return c.Topic(nil).Preallocate }},
	"log.retention.bytes":                 {"77", func(c *Config) bool { return c.Topic(nil).RetentionBytes == 77 }},
	"log.retention.check.interval.ms":     {"4", func(c *Config) bool { return c.RetentionCheckInterval == 4*time.Millisecond }},
	"log.retention.hours":                 {"2", func(c *Config) bool { return c.Topic(nil).RetentionMs == 7_200_000 }},
	"log.retention.minutes":               {"3", func(c *Config) bool { return c.Topic(nil).RetentionMs == 180_000 }},
	"log.retention.ms":                    {"-1", func(c *Config) bool { return c.Topic(nil).RetentionMs == -1 }},
	"log.roll.hours":                      {"2", func(c *Config) bool { return c.Topic(nil).SegmentMs == 7_200_000 }},
	"log.roll.jitter.hours":               {"1", func(c *Config) bool { return c.Topic(nil).SegmentJitterMs == 3_600_000 }},
	"log.roll.jitter.ms":                  {"5", func(c *Config) bool { return c.Topic(nil).SegmentJitterMs == 5 }},
	"log.roll.ms":                         {"6", func(c *Config) bool { return c.Topic(nil).SegmentMs == 6 }},
	"log.segment.bytes":                   {"1000", func(c *Config) bool { return c.Topic(nil).SegmentBytes == 1000 }},
	"log.segment.delete.delay.ms": {"8", func(c *Config) bool {
		return c.FileDeleteDelay == 8*time.Millisecond && c.Topic(nil).FileDeleteDelayMs == 8
	}},
	"max.connections":                           {"4", func(c *Config) bool { return c.MaxConnections == 4 }},
	"max.connections.per.ip":                    {"3", func(c *Config) bool { return c.MaxConnectionsPerIP == 3 }},
	"message.max.bytes":                         {"55", func(c *Config) bool { return c.Topic(nil).MaxMessageBytes == 55 }},
	"min.insync.replicas":                       {"2", func(c *Config) bool { return c.Topic(nil).MinInSyncReplicas == 2 }},
	"node.id":                                   {"6", func(c *Config) bool { return c.BrokerID == 6 }},
	"num.partitions":                            {"12", func(c *Config) bool { return c.NumPartitions == 12 }},
	"producer.id.expiration.check.interval.ms":  {"90", func(c *Config) bool { return c.ProducerCheckInterval == 90*time.Millisecond }},
	"request.timeout.ms":                        {"90", func(c *Config) bool { return c.RequestTimeout == 90*time.Millisecond }},
	"transaction.partition.verification.enable": {"false", func(c *Config) bool { return !c.VerifyTransactions }},
	"producer.id.expiration.ms":                 {"90", func(c *Config) bool { return c.ProducerIDExpiration == 90*time.Millisecond }},
	"queued.max.request.bytes":                  {"104857601", func(c *Config) bool { return c.QueuedBytes == 104857601 }},
	"reserved.broker.max.id":                    {"2000", func(c *Config) bool { return c.MaxReservedBrokerID == 2000 }},
	"socket.request.max.bytes":                  {"1000", func(c *Config) bool { return c.RequestMax == 1000 }},

	"log.flush.scheduler.interval.ms":               {"33", func(c *Config) bool { return c.Topic(nil).FlushMs == 33 }},
	"log.flush.offset.checkpoint.interval.ms":       {"11", func(c *Config) bool { return c.RecoveryPointInterval == 11*time.Millisecond }},
	"log.flush.start.offset.checkpoint.interval.ms": {"12", func(c *Config) bool { return c.LogStartInterval == 12*time.Millisecond }},
	"replica.high.watermark.checkpoint.interval.ms": {"13", func(c *Config) bool { return c.HighWatermarkInterval == 13*time.Millisecond }},
	"log.message.timestamp.after.max.ms":            {"15", func(c *Config) bool { return c.Topic(nil).TimestampAfterMaxMs == 15 }},
	"log.message.timestamp.before.max.ms":           {"16", func(c *Config) bool { return c.Topic(nil).TimestampBeforeMaxMs == 16 }},
	"log.message.timestamp.difference.max.ms": {"17", func(c *Config) bool {
		t := c.Topic(nil)
		return t.TimestampBeforeMaxMs == 17 && t.TimestampAfterMaxMs == 17
	}},
	"group.initial.rebalance.delay.ms":          {"9", func(c *Config) bool { return c.Groups.InitialDelayMs == 9 }},
	"group.max.session.timeout.ms":              {"9000", func(c *Config) bool { return c.Groups.MaxSessionMs == 9000 }},
	"group.min.session.timeout.ms":              {"9", func(c *Config) bool { return c.Groups.MinSessionMs == 9 }},
	"group.max.size":                            {"9", func(c *Config) bool { return c.Groups.MaxSize == 9 }},
	"offset.metadata.max.bytes":                 {"9", func(c *Config) bool { return c.Groups.MetadataMax == 9 }},
	"offsets.commit.required.acks":              {"1", func(c *Config) bool { return c.Groups.CommitAcks == 1 }},
	"offsets.commit.timeout.ms":                 {"9", func(c *Config) bool { return c.Groups.CommitTimeout == 9*time.Millisecond }},
	"offsets.load.buffer.size":                  {"9", func(c *Config) bool { return c.Groups.LoadBuffer == 9 }},
	"offsets.retention.check.interval.ms":       {"9", func(c *Config) bool { return c.Groups.CheckInterval == 9*time.Millisecond }},
	"offsets.retention.minutes":                 {"9", func(c *Config) bool { return c.Groups.Retention == 9*time.Minute }},
	"offsets.topic.compression.codec":           {"4", func(c *Config) bool { return c.Groups.Codec == 4 }},
	"offsets.topic.num.partitions":              {"5", func(c *Config) bool { return c.Groups.Partitions == 5 }},
	"offsets.topic.replication.factor":          {"3", func(c *Config) bool { return c.Groups.ReplicationFactor == 3 && !c.Groups.Fewer }},
	"offsets.topic.segment.bytes":               {"9", func(c *Config) bool { return c.Groups.SegmentBytes == 9 }},
	"max.connections.per.ip.overrides":          {"10.0.0.1:5", func(c *Config) bool { return c.ConnectionsByIP[netip.MustParseAddr("10.0.0.1")] == 5 }},
	"max.incremental.fetch.session.cache.slots": {"18", func(c *Config) bool { return c.FetchSessions == 18 }},
	"num.recovery.threads.per.data.dir":         {"4", func(c *Config) bool { return c.RecoveryThreads == 4 }},
	"transaction.state.log.num.partitions":      {"6", func(c *Config) bool { return c.TransactionsPartitions == 6 }},
}

func TestEveryActingKeyIsReadAndNoOtherIsClaimed(t *testing.T) {
	for _, k := range BrokerKeys {
		a, ok := acting[k.Name]
		if k.Acts() != ok {
			t.Errorf("%s: acts %v, tested %v", k.Name, k.Acts(), ok)
			continue
		}
		if a.seen == nil {
			continue
		}
		c, warnings, err := fromStatic(map[string]string{k.Name: a.value})
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s=%s: %v %v", k.Name, a.value, warnings, err)
		} else if !a.seen(c) {
			t.Errorf("%s=%s changes nothing", k.Name, a.value)
		}
	}
}

func TestKafkasExampleFileLoads(t *testing.T) {
	c, warnings, err := Load("testdata/server.properties", []string{"num.partitions=3", "listeners=PLAINTEXT://127.0.0.1:19092"})
	if err != nil {
		t.Fatal(err)
	}
	if c.BrokerID != 0 || c.NumPartitions != 3 || c.Listeners[0].Port != 19092 || c.LogDirs[0] != "/tmp/kafka-logs" {
		t.Errorf("%+v", c)
	}
	var names []string
	for _, w := range warnings {
		names = append(names, w.Key)
	}
	want := []string{"transaction.state.log.min.isr",
		"transaction.state.log.replication.factor", "zookeeper.connection.timeout.ms"}
	if !slices.Equal(names, want) {
		t.Errorf("warned about %v, want %v", names, want)
	}
}

func TestWithoutAFileDataGoesToTheStateDirectory(t *testing.T) {
	t.Setenv("STATE_DIRECTORY", "")
	if c, _, err := Load("", nil); err != nil || c.LogDirs[0] != "./kring-data" {
		t.Errorf("%+v %v", c, err)
	}
	t.Setenv("STATE_DIRECTORY", "/var/lib/kring:/var/lib/other")
	if c, _, err := Load("", nil); err != nil || c.LogDirs[0] != "/var/lib/kring" {
		t.Errorf("%+v %v", c, err)
	}
	empty := filepath.Join(t.TempDir(), "server.properties")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if c, _, err := Load(empty, nil); err != nil || c.LogDirs[0] != "/tmp/kafka-logs" {
		t.Errorf("a file without log.dirs has Kafka's default: %+v %v", c, err)
	}
}

func TestWarningsNameAKeyOnce(t *testing.T) {
	_, warnings, err := fromStatic(map[string]string{
		"delegation.token.max.lifetime.ms": "2", "num.io.threads": "8", "num.network.threads": "4", "confluent.support.id": "x", "listener.name.a.ssl.key.password": "secret",
		"num.partitons": "2",
	})
	want := []Warning{
		{"confluent.support.id", "unknown, ignored"},
		{"delegation.token.max.lifetime.ms", "does not act yet"},
		{"listener.name.a.ssl.key.password", "settings of a single listener do not act yet"},
		{"num.network.threads", "sets nothing here: kring.loops takes the place of Kafka's threads and their queues"},
		{"num.partitons", "unknown, ignored; the nearest is num.partitions"},
	}
	if err != nil || !slices.Equal(warnings, want) {
		t.Errorf("%v %v", warnings, err)
	}
}

// TestBadSettingsAreFound: an error says where the setting stands, unless it was given otherwise.
func TestBadSettingsAreFound(t *testing.T) {
	file := t.TempDir() + "/server.properties"
	if err := os.WriteFile(file, []byte("# mine\n\nnum.partitions=2\nlog.dirs=a\nprocess.roles=\\\n  broker\nnum.partitions=many\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		overrides []string
		want      string
	}{
		{nil, file + ":5: process.roles=broker is not supported: "},
		{[]string{"process.roles="}, file + ":7: num.partitions=many is not valid; "},
		{[]string{"process.roles=", "num.partitions=few"}, "num.partitions=few is not valid; "},
		{[]string{"process.roles=", "num.partitions=3", "listeners=x"}, "listeners=x is not valid; "},
	} {
		if _, _, err := Load(file, row.overrides); err == nil || !strings.HasPrefix(err.Error(), row.want) {
			t.Errorf("%v: %v, want %s...", row.overrides, err, row.want)
		}
	}
}

// TestSessionsNobodyCanHaveAreWarnedOf: Kafka takes these bounds, and then refuses every member.
func TestSessionsNobodyCanHaveAreWarnedOf(t *testing.T) {
	for min, want := range map[string]int{"5000": 0, "5001": 1} {
		_, warnings, err := fromStatic(map[string]string{"group.min.session.timeout.ms": min, "group.max.session.timeout.ms": "5000"})
		if err != nil || len(warnings) != want {
			t.Errorf("%s: %v %v", min, warnings, err)
		}
	}
}

func TestBadSettings(t *testing.T) {
	for _, row := range []struct{ settings, want string }{
		{"num.partitions=0", "num.partitions=0 is not valid; allowed: at least 1"},
		{"num.partitions=many", "num.partitions=many is not valid; allowed: a whole number from -2147483648 to 2147483647"},
		{"num.partitions=", "num.partitions= is not valid; allowed: a whole number from -2147483648 to 2147483647"},
		{"log.retention.ms=99999999999999999999", "log.retention.ms=99999999999999999999 is not valid; allowed: a whole number from " +
			"-9223372036854775808 to 9223372036854775807"},
		{"log.retention.ms=0", "log.retention.ms=0 is not valid; allowed: at least 1, or -1 for ever"},
		{"log.retention.hours=0", "log.retention.hours=0 is not valid; allowed: at least 1, or -1 for ever"},
		{"log.roll.ms=0", "log.roll.ms=0 is not valid; allowed: at least 1"},
		{"log.roll.jitter.ms=-1", "log.roll.jitter.ms=-1 is not valid; allowed: at least 0"},
		{"auto.create.topics.enable=yes", "auto.create.topics.enable=yes is not valid; allowed: true or false"},
		{"log.cleanup.policy=compact,remove", "log.cleanup.policy=compact,remove is not valid; allowed: a list of compact, delete"},
		{"log.cleaner.min.cleanable.ratio=1.5", "log.cleaner.min.cleanable.ratio=1.5 is not valid; allowed: from 0 to 1"},
		{"log.message.timestamp.type=Now", "log.message.timestamp.type=Now is not valid; allowed: one of CreateTime, LogAppendTime"},
		{"inter.broker.protocol.version=9.1", "inter.broker.protocol.version=9.1 is not valid; allowed: a Kafka version from 0.8.0 to 4.0"},
		{"broker.id=1001", "broker.id=1001 is not valid; allowed: from -1 (generated) to reserved.broker.max.id"},
		{"broker.id.generation.enable=false", "broker.id=-1 is not valid; allowed: at least 0, since broker.id.generation.enable is false"},
		{"broker.id=1 node.id=2", "node.id=2 is not valid; allowed: the same as broker.id, or not set"},
		{"log.dirs=", "log.dirs= is not valid; allowed: at least one directory"},
		{"log.dirs=,", "log.dirs=, is not valid; allowed: at least one directory"},
		{"log.dirs=/a,/a/", "log.dirs=/a,/a/ is not valid; each directory may stand once"},
		{"max.connections.per.ip=0", "max.connections.per.ip=0 is not valid; allowed: at least 1 unless max.connections.per.ip.overrides lets somebody in"},
		{"max.connections.per.ip.overrides=host:1", "max.connections.per.ip.overrides=host:1 is not valid; allowed: addresses (names are not looked up), such as 10.0.0.1:5"},
		{"queued.max.request.bytes=1", "queued.max.request.bytes=1 is not valid; allowed: at least socket.request.max.bytes, or -1"},
		{"default.replication.factor=0", "default.replication.factor=0 is not valid; allowed: from 1 to 32767"},
		{"replica.fetch.wait.max.ms=90000", "replica.fetch.wait.max.ms=90000 is not valid; allowed: at most replica.lag.time.max.ms"},
		{"offsets.commit.required.acks=4", "offsets.commit.required.acks=4 is not valid; allowed: from -1 to offsets.topic.replication.factor"},
		{"offsets.topic.compression.codec=5", "offsets.topic.compression.codec=5 is not valid; allowed: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd"},
		{"log.cleaner.min.compaction.lag.ms=9 log.cleaner.max.compaction.lag.ms=8",
			"log.cleaner.min.compaction.lag.ms=9 is not valid; allowed: at most log.cleaner.max.compaction.lag.ms"},
		{"log.cleaner.dedupe.buffer.size=1000", "log.cleaner.dedupe.buffer.size=1000 is not valid; allowed: more than 1048576 for each cleaner thread"},
		{"kring.loops=-1", "kring.loops=-1 is not valid; allowed: from 0 to 256"},
		{"kring.log.level=loud", "kring.log.level=loud is not valid; allowed: one of debug, info, warn, error"},
		{"kring.metrics.address=9404", "kring.metrics.address=9404 is not valid; allowed: host:port, or nothing for none"},
		{"kring.metrics.address=localhost:http", "kring.metrics.address=localhost:http is not valid; allowed: host:port, or nothing for none"},
		{"kring.lops=2", "kring.lops=2 is not valid; there is no such setting; the nearest is kring.loops"},
		{"kring.metrics.port=9404", "kring.metrics.port=9404 is not valid; there is no such setting; the nearest is kring.metrics.address"},
		{"kring.write.path=mmap", "kring.write.path=mmap is not valid; allowed: one of auto, ring, pwrite"},
		{"listeners=", "listeners= is not valid; allowed: at least one listener"},
		{"listeners=9092", "listeners=9092 is not valid; allowed: NAME://host:port, separated by commas"},
		{"listeners=PLAINTEXT://h:70000", "listeners=PLAINTEXT://h:70000 is not valid; allowed as a port: from 0 to 65535"},
		{"listeners=PLAINTEXT://a$b:1", `listeners=PLAINTEXT://a$b:1 is not valid; "a$b" is not a host name or an address`},
		{"listeners=X://h:1", "listeners=X://h:1 is not valid; listener.security.protocol.map has no protocol for X"},
		{"listeners=PLAINTEXT://a:1,plaintext://b:2", "listeners=PLAINTEXT://a:1,plaintext://b:2 is not valid; each listener needs a name of its own: PLAINTEXT"},
		{"listeners=PLAINTEXT://0.0.0.0:1", "listeners=PLAINTEXT://0.0.0.0:1 is not valid; clients cannot reach 0.0.0.0: set advertised.listeners " +
			"to an address they can, or leave the host out"},
		{"advertised.listeners=SSL://h:1", "advertised.listeners=SSL://h:1 is not valid; no listener is called SSL"},
		{"listener.security.protocol.map=A", "listener.security.protocol.map=A is not valid; allowed: NAME:PROTOCOL, separated by commas"},
		{"listener.security.protocol.map=A:TLS", "listener.security.protocol.map=A:TLS is not valid; allowed as a protocol: PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"},
		{"inter.broker.listener.name=B", "inter.broker.listener.name=B is not valid; no advertised listener is called so"},
		{"inter.broker.listener.name=PLAINTEXT security.inter.broker.protocol=PLAINTEXT",
			"inter.broker.listener.name=PLAINTEXT is not valid; only one of it and security.inter.broker.protocol may be set"},
	} {
		c, _, err := fromStatic(settings(row.settings))
		var malformed *Malformed
		if !errors.As(err, &malformed) || err.Error() != row.want {
			t.Errorf("%s:\n got %v (%v)\nwant %s", row.settings, err, c != nil, row.want)
		}
	}
}

func settings(s string) map[string]string {
	m := map[string]string{}
	for f := range strings.FieldsSeq(s) {
		k, v, _ := strings.Cut(f, "=")
		m[k] = v
	}
	return m
}

func TestTwoListenersOnAPortNeedTwoAddressFamilies(t *testing.T) {
	const names = " listener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT inter.broker.listener.name=A"
	if _, _, err := fromStatic(settings("listeners=A://127.0.0.1:1,B://[::1]:1" + names)); err != nil {
		t.Error(err)
	}
	for _, l := range []string{"A://127.0.0.1:1,B://127.0.0.2:1", "A://:1,B://[::1]:1"} {
		if _, _, err := fromStatic(settings("listeners=" + l + names)); err == nil {
			t.Errorf("%s passed", l)
		}
	}
	c, _, err := fromStatic(settings("listeners=A://127.0.0.1:0,B://[::1%lo]:0" + names))
	if err != nil || c.Listeners[1].Host != "::1%lo" || c.InterBroker != "A" {
		t.Errorf("%+v %v", c.Listeners, err)
	}
}

func TestUnsupportedStopsTheStartAndSaysWhy(t *testing.T) {
	for _, row := range []struct{ settings, key string }{
		{"process.roles=broker,controller node.id=1 controller.listener.names=C controller.quorum.voters=1@h:1", "process.roles"},
		{"controller.quorum.voters=1@h:1", "controller.quorum.voters"},
		{"zookeeper.connect=localhost:2181", "zookeeper.connect"},
		{"zookeeper.metadata.migration.enable=true", "zookeeper.metadata.migration.enable"},
		{"authorizer.class.name=kafka.security.authorizer.AclAuthorizer", "authorizer.class.name"},
		{"create.topic.policy.class.name=a.B", "create.topic.policy.class.name"},
		{"alter.config.policy.class.name=a.B", "alter.config.policy.class.name"},
		{"remote.log.storage.system.enable=true", "remote.log.storage.system.enable"},
		{"listeners=SSL://h:1 advertised.listeners=SSL://h:1 security.inter.broker.protocol=SSL", "listeners"},
		{"listeners=C://h:1 listener.security.protocol.map=C:SASL_PLAINTEXT inter.broker.listener.name=C", "listeners"},
		{"security.inter.broker.protocol=SASL_SSL", "security.inter.broker.protocol"},
	} {
		_, _, err := fromStatic(settings(row.settings))
		var e *Unsupported
		if !errors.As(err, &e) || e.Key != row.key || e.Why == "" {
			t.Errorf("%s: %v", row.settings, err)
		}
	}
	for _, s := range []string{"process.roles=", "zookeeper.connect=", "authorizer.class.name=", "remote.log.storage.system.enable=false"} {
		if _, _, err := fromStatic(settings(s)); err != nil {
			t.Errorf("%s is Kafka's default: %v", s, err)
		}
	}
}

func TestSecretsStayOutOfErrors(t *testing.T) {
	err := error(&Malformed{"ssl.key.password", "hunter2", "why"})
	if strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}

func TestKeysAndValuesAreTrimmedAsKafkaDoes(t *testing.T) {
	c, _, err := fromStatic(map[string]string{"num.partitions": " +4 ", "log.dirs": " /a , /b ", "listeners": " PLAINTEXT://x:1 , "})
	if err != nil || c.NumPartitions != 4 || c.LogDirs[1] != "/b" || c.Listeners[0].Host != "x" {
		t.Errorf("%+v %v", c, err)
	}
}

func TestFinerUnitWins(t *testing.T) {
	c, _, err := fromStatic(settings("log.retention.ms=5 log.retention.minutes=1 log.retention.hours=1 log.roll.ms=7 log.roll.hours=2"))
	if err != nil {
		t.Fatal(err)
	}
	if topic := c.Topic(nil); topic.RetentionMs != 5 || topic.SegmentMs != 7 {
		t.Errorf("%+v", topic)
	}
	c, _, _ = fromStatic(settings("log.retention.hours=-1 log.flush.scheduler.interval.ms=100"))
	if topic := c.Topic(nil); topic.RetentionMs != -1 || topic.FlushMs != 100 {
		t.Errorf("%+v", topic)
	}
}

func TestDefaultsAreKafkas(t *testing.T) {
	c, _, err := fromStatic(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Topic{SegmentBytes: 1 << 30, SegmentMs: 604800000, SegmentIndexBytes: 10 << 20, IndexIntervalBytes: 4096,
		RetentionMs: 604800000, RetentionBytes: -1, FlushMessages: math.MaxInt64, FlushMs: math.MaxInt64, MaxMessageBytes: 1048588,
		MinInSyncReplicas: 1, Delete: true, FileDeleteDelayMs: 60000, TimestampBeforeMaxMs: math.MaxInt64,
		TimestampAfterMaxMs: math.MaxInt64, DeleteRetentionMs: 86400000, MinCleanableRatio: 0.5, MaxCompactionLagMs: math.MaxInt64}
	if got := c.Topic(nil); got != want {
		t.Errorf("%+v", got)
	}
	if !c.CleanerEnabled || c.CleanerThreads != 1 || c.CleanerBackoff != 15*time.Second || c.CleanerDedupeBytes != 128<<20 ||
		c.CleanerLoadFactor != 0.9 || c.CleanerBufferBytes != 512<<10 || c.CleanerBytesPerSecond != math.MaxFloat64 {
		t.Errorf("%+v", c)
	}
	if c.ConnectionsMaxIdle != 10*time.Minute || c.Listeners[0].Port != 9092 {
		t.Errorf("%+v", c)
	}
}

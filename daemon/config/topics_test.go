package config

import (
	"errors"
	"slices"
	"testing"
)

func defaults(t *testing.T, static string) *Config {
	t.Helper()
	c, _, err := fromStatic(settings(static))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTopicOverridesWin(t *testing.T) {
	c := defaults(t, "log.segment.bytes=100 log.retention.hours=1")
	got := c.Topic(settings("segment.bytes=200 retention.ms=-1 cleanup.policy=compact flush.messages=1 flush.ms=0 max.message.bytes=10 " +
		"message.timestamp.type=LogAppendTime min.insync.replicas=2 preallocate=true index.interval.bytes=0 segment.ms=9 segment.jitter.ms=8 " +
		"segment.index.bytes=100 retention.bytes=5 file.delete.delay.ms=0 message.timestamp.before.max.ms=3 message.timestamp.after.max.ms=4 " +
		"delete.retention.ms=11 min.cleanable.dirty.ratio=0.25 min.compaction.lag.ms=12 max.compaction.lag.ms=13"))
	want := Topic{SegmentBytes: 200, SegmentMs: 9, SegmentJitterMs: 8, SegmentIndexBytes: 100, RetentionMs: -1, RetentionBytes: 5,
		FlushMessages: 1, MaxMessageBytes: 10, MinInSyncReplicas: 2, Preallocate: true, LogAppendTime: true, Compact: true,
		TimestampBeforeMaxMs: 3, TimestampAfterMaxMs: 4,
		DeleteRetentionMs: 11, MinCleanableRatio: 0.25, MinCompactionLagMs: 12, MaxCompactionLagMs: 13}
	if got != want {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
	if got := c.Topic(settings("segment.bytes=nonsense")); got.SegmentBytes != 100 {
		t.Errorf("an override that is not valid counts as absent: %d", got.SegmentBytes)
	}
}

func TestTopicSettingsAreChecked(t *testing.T) {
	c := defaults(t, "")
	for _, row := range []struct {
		overrides string
		want      string
	}{
		{"", ""},
		{"cleanup.policy=compact,delete retention.ms=-1", ""},
		{"cleanup.policy=", ""},
		{"leader.replication.throttled.replicas=0:1,1:2", ""},
		{"leader.replication.throttled.replicas=*", ""},
		{"leader.replication.throttled.replicas=0-1", "leader.replication.throttled.replicas=0-1 is not valid; allowed: partition:broker,partition:broker,... or *"},
		{"no.such.key=1", "Unknown topic config name: no.such.key"},
		{"log.retention.ms=1", "Unknown topic config name: log.retention.ms"},
		{"retention.ms=-2", "retention.ms=-2 is not valid; allowed: at least -1"},
		{"segment.bytes=13", "segment.bytes=13 is not valid; allowed: at least 14"},
		{"min.insync.replicas=0", "min.insync.replicas=0 is not valid; allowed: at least 1"},
		{"compression.type=zip", "compression.type=zip is not valid; allowed: one of uncompressed, zstd, lz4, snappy, gzip, producer"},
		{"compression.gzip.level=0", "compression.gzip.level=0 is not valid; allowed: from 1 to 9, or -1"},
		{"min.compaction.lag.ms=10 max.compaction.lag.ms=9", "min.compaction.lag.ms=10 is not valid; allowed: at most max.compaction.lag.ms, 9"},
		{"remote.storage.enable=true", "remote.storage.enable=true is not supported: " + noTier},
		{"message.format.version=0.10.1-IV3", "message.format.version=0.10.1-IV3 is not valid; allowed: a Kafka version from 0.8.0 to 4.0"},
		{"message.format.version=2.8", ""},
	} {
		err := c.CheckTopic(settings(row.overrides))
		if got := message(err); got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.overrides, got, row.want)
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestIdleTopicSettingsAreNamed(t *testing.T) {
	got := Idle(settings("retention.ms=1 cleanup.policy=compact compression.type=gzip delete.retention.ms=86400000 min.cleanable.dirty.ratio=0.1 x=1"))
	if want := []string{"compression.type"}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

func find(t *testing.T, entries []Entry, name string) Entry {
	t.Helper()
	i := slices.IndexFunc(entries, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		t.Fatalf("%s is not described", name)
	}
	return entries[i]
}

func TestTopicIsDescribedWithItsSynonyms(t *testing.T) {
	c := defaults(t, "log.retention.hours=2")
	c, errs := c.With(settings("log.retention.ms=300"), settings("log.retention.ms=400"))
	if errs != nil {
		t.Fatal(errs)
	}
	e := find(t, c.DescribeTopic(settings("retention.ms=100")), "retention.ms")
	type row struct {
		name, value string
		source      Source
	}
	var got []row
	for _, s := range e.Synonyms {
		got = append(got, row{s.Name, *s.Value, s.Source})
	}
	want := []row{{"retention.ms", "100", SourceTopic}, {"log.retention.ms", "300", SourceBroker}, {"log.retention.ms", "400", SourceDefaultBroker},
		{"log.retention.hours", "2", SourceStatic}, {"log.retention.hours", "168", SourceDefault}}
	if *e.Value != "100" || e.Source != SourceTopic || e.Type != Long || e.ReadOnly || e.Sensitive || !slices.Equal(got, want) {
		t.Errorf("%+v %v", e, got)
	}
	if e := find(t, c.DescribeTopic(nil), "retention.ms"); *e.Value != "300" || e.Source != SourceBroker {
		t.Errorf("%+v", e)
	}
	if e := find(t, c.DescribeTopic(nil), "segment.bytes"); *e.Value != "1073741824" || e.Source != SourceDefault || e.Doc == "" {
		t.Errorf("%+v", e)
	}
	if e := find(t, c.DescribeTopic(nil), "remote.storage.enable"); e.Synonyms != nil || *e.Value != "false" {
		t.Errorf("%+v", e)
	}
}

func TestBrokerIsDescribed(t *testing.T) {
	c := defaults(t, "num.partitions=3 ssl.key.password=secret my.plugin=x log.retention.ms=9")
	all := c.DescribeBroker()
	if e := find(t, all, "num.partitions"); *e.Value != "3" || e.Source != SourceStatic || !e.ReadOnly || len(e.Synonyms) != 2 {
		t.Errorf("%+v", e)
	}
	if e := find(t, all, "ssl.key.password"); e.Value != nil || !e.Sensitive || e.Synonyms[0].Value != nil {
		t.Errorf("%+v", e)
	}
	if e := find(t, all, "my.plugin"); e.Value != nil || !e.Sensitive || !e.ReadOnly || e.Source != SourceStatic || e.Type != 0 {
		t.Errorf("%+v", e)
	}
	if e := find(t, all, "log.retention.ms"); *e.Value != "9" || e.ReadOnly {
		t.Errorf("%+v", e)
	}
	if e := find(t, all, "broker.rack"); e.Value != nil || e.Sensitive {
		t.Errorf("%+v", e)
	}
	if slices.ContainsFunc(all, func(e Entry) bool { return e.Name == "group.share.enable" }) {
		t.Error("an internal key is shown")
	}
	if !slices.IsSortedFunc(all, func(a, b Entry) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	}) {
		t.Error("not in order of name")
	}
}

func TestDynamicSettingsAreLaidOver(t *testing.T) {
	c := defaults(t, "message.max.bytes=1000 broker.id=4")
	next, errs := c.With(settings("message.max.bytes=2000 x.plugin=1"), settings("message.max.bytes=3000 log.segment.bytes=500"))
	if errs != nil || next.Topic(nil).MaxMessageBytes != 2000 || next.Topic(nil).SegmentBytes != 500 || next.BrokerID != 4 {
		t.Errorf("%+v %v", next.Topic(nil), errs)
	}
	if c.Topic(nil).MaxMessageBytes != 1000 {
		t.Error("the Config it was made from has changed")
	}
	if e := find(t, next.DescribeDefaults(), "log.segment.bytes"); *e.Value != "500" || e.Source != SourceDefaultBroker || len(e.Synonyms) != 1 {
		t.Errorf("%+v", e)
	}
	next, errs = c.With(settings("num.partitions=9 message.max.bytes=-4 log.segment.bytes=77"), nil)
	if len(errs) != 2 || next.NumPartitions != 1 || next.Topic(nil).MaxMessageBytes != 1000 || next.Topic(nil).SegmentBytes != 77 {
		t.Errorf("what is not valid is left out: %v %+v", errs, next.Topic(nil))
	}
	if back, errs := next.With(nil, nil); errs != nil || back.Topic(nil).SegmentBytes != 1<<30 {
		t.Errorf("a removed setting falls back: %+v %v", back.Topic(nil), errs)
	}
}

func TestDynamicSettingsAreChecked(t *testing.T) {
	c := defaults(t, "")
	var fixed *Fixed
	var malformed *Malformed
	for _, row := range []struct {
		settings string
		all      bool
		want     any
	}{
		{"log.retention.ms=5", true, nil},
		{"leader.replication.throttled.rate=5", false, nil},
		{"some.plugin.key=5", true, nil},
		{"num.partitions=5", true, &fixed},
		{"sasl.enabled.mechanisms=PLAIN", true, &fixed},
		{"listeners=PLAINTEXT://:1", false, &fixed},
		{"ssl.key.password=x", false, &fixed},
		{"log.retention.ms=x", false, &malformed},
		{"log.retention.ms=0", true, &malformed},
		{"leader.replication.throttled.rate=-1", true, &malformed},
		{"log.cleaner.threads=2", true, nil},
		{"log.cleaner.threads=3", true, &malformed},
		{"log.cleaner.threads=0", false, &malformed},
		{"log.cleaner.dedupe.buffer.size=5", true, &malformed},
		{"log.cleaner.enable=false", true, &fixed},
	} {
		err := c.CheckBroker(settings(row.settings), row.all)
		if (row.want == nil) != (err == nil) || row.want != nil && !errors.As(err, row.want) {
			t.Errorf("%s, every broker %v: %v", row.settings, row.all, err)
		}
	}
}

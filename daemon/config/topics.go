package config

import (
	"maps"
	"math"
	"slices"
	"strings"
)

// TopicKey is what is known of one topic setting. The facts are Kafka 3.9's (see testdata/README.md).
type TopicKey struct {
	Name    string
	Type    Type
	Default string
	Allowed rule
	broker  []unit // the broker keys that give the default, the first that is set wins; none: Default does
	state   state
	Doc     string
}

func same(name string) []unit { return []unit{{name, 1}} }

// LookupTopic finds a topic setting; nil if there is none of that name.
func LookupTopic(name string) *TopicKey {
	i, found := slices.BinarySearchFunc(TopicKeys, name, func(k TopicKey, n string) int { return strings.Compare(k.Name, n) })
	if !found {
		return nil
	}
	return &TopicKeys[i]
}

// Acts reports whether the setting does anything here.
func (k *TopicKey) Acts() bool { return k.state == acts }

// get is the effective value of a setting: the override if it is valid, else the broker's.
func (k *TopicKey) get(c *Config, overrides map[string]string) parsed {
	if v, ok := overrides[k.Name]; ok {
		if p, err := parse(k.Type, v, k.Allowed); err == nil {
			return p
		}
	}
	return k.fallback(c)
}

// fallback is the value a topic has without an override.
func (k *TopicKey) fallback(c *Config) parsed {
	for _, u := range k.broker {
		p, ok := c.layers.get(u.name)
		if ok && u.ms != 1 {
			p, _ = parse(Long, number64(u.scale(p.n)), anything)
		}
		if ok {
			return p
		}
	}
	p, _ := parse(k.Type, k.Default, k.Allowed)
	return p
}

func (c *Config) topic(overrides map[string]string) Topic {
	get := func(name string) parsed { return LookupTopic(name).get(c, overrides) }
	t := Topic{
		SegmentBytes:         int32(get("segment.bytes").n),
		SegmentMs:            get("segment.ms").n,
		SegmentJitterMs:      get("segment.jitter.ms").n,
		SegmentIndexBytes:    int32(get("segment.index.bytes").n),
		IndexIntervalBytes:   int32(get("index.interval.bytes").n),
		RetentionMs:          get("retention.ms").n,
		RetentionBytes:       get("retention.bytes").n,
		FlushMessages:        get("flush.messages").n,
		FlushMs:              get("flush.ms").n,
		MaxMessageBytes:      int32(get("max.message.bytes").n),
		MinInSyncReplicas:    int32(get("min.insync.replicas").n),
		Preallocate:          get("preallocate").yes,
		LogAppendTime:        get("message.timestamp.type").s == "LogAppendTime",
		FileDeleteDelayMs:    get("file.delete.delay.ms").n,
		DeleteRetentionMs:    get("delete.retention.ms").n,
		MinCleanableRatio:    get("min.cleanable.dirty.ratio").f,
		MinCompactionLagMs:   get("min.compaction.lag.ms").n,
		MaxCompactionLagMs:   get("max.compaction.lag.ms").n,
		TimestampBeforeMaxMs: get("message.timestamp.before.max.ms").n,
		TimestampAfterMaxMs:  get("message.timestamp.after.max.ms").n,
	}
	policy := get("cleanup.policy").list
	t.Compact, t.Delete = slices.Contains(policy, "compact"), slices.Contains(policy, "delete")
	// The older setting counts where the newer ones stand at their default (LogConfig.getMessageTimestampBeforeMaxMs).
	older := get("message.timestamp.difference.max.ms").n
	if t.TimestampBeforeMaxMs == math.MaxInt64 {
		t.TimestampBeforeMaxMs = older
	}
	if t.TimestampAfterMaxMs == math.MaxInt64 {
		t.TimestampAfterMaxMs = older
	}
	return t
}

func (c *Config) checkTopic(overrides map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		k, value := LookupTopic(name), overrides[name]
		if k == nil {
			return &Unknown{name}
		}
		p, err := parse(k.Type, value, k.Allowed)
		if err != nil {
			return &Malformed{name, value, err.Error()}
		}
		if name == "remote.storage.enable" && p.yes {
			return &Unsupported{name, value, noTier}
		}
	}
	low, high := LookupTopic("min.compaction.lag.ms").get(c, overrides), LookupTopic("max.compaction.lag.ms").get(c, overrides)
	if low.n > high.n {
		return &Malformed{"min.compaction.lag.ms", low.s, "allowed: at most max.compaction.lag.ms, " + high.s}
	}
	return nil
}

// Idle names those of the overrides that are known and do not act yet, in order.
func Idle(overrides map[string]string) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		k := LookupTopic(name)
		if k == nil {
			continue
		}
		p, err := parse(k.Type, overrides[name], k.Allowed)
		if !k.Acts() && !(err == nil && p.s == k.Default) {
			names = append(names, name)
		}
	}
	return names
}

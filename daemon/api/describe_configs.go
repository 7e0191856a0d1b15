package api

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/config"
	"kring/daemon/server"
	"kring/metadata"
	"kring/replication/controller"
	"kring/wire"
)

// describedMost bounds the answer of one DescribeConfigs in bytes, roughly. The settings of ten thousand topics need a fourth
// of it; with everything that can be asked of them twice as much as it allows.
const describedMost = 64 << 20

// considered is what a setting counts for that was looked up, even if it is not asked for.
const considered = 64

const tooMuchDescribed = "Excessively large number of configs per request."

// describeConfigs tells the settings of topics and of this broker, with where each value comes from.
func describeConfigs(c *Context, r *server.Request) {
	m := kmsg.NewPtrDescribeConfigsRequest()
	if !decode(r, m) {
		return
	}
	resp := kmsg.NewPtrDescribeConfigsResponse()
	size := 0
	type name struct {
		kind kmsg.ConfigResourceType
		name string
	}
	seen := make(map[name]bool, len(m.Resources))
	for i := range m.Resources {
		resource := &m.Resources[i]
		rr := kmsg.NewDescribeConfigsResponseResource()
		rr.ResourceType, rr.ResourceName = resource.ResourceType, resource.ResourceName
		var entries []config.Entry
		var err error
		switch id := (name{resource.ResourceType, resource.ResourceName}); {
		case seen[id]:
			// naming costs a few bytes, describing some thousands
			rr.ErrorCode, rr.ErrorMessage = int16(wire.InvalidRequest), optional("Duplicate resource in request.")
		case size > describedMost:
			rr.ErrorCode, rr.ErrorMessage = int16(wire.PolicyViolation), optional(tooMuchDescribed)
		default:
			seen[id] = true
			if entries, err = settingsOf(c, resource); err != nil {
				rr.ErrorCode, rr.ErrorMessage = int16(codeOf(err)), messageOf(err)
			}
		}
		if rr.ErrorMessage == nil { // Kafka's tools print their own words instead of none
			rr.ErrorMessage = new(string)
		}
		size += considered * len(entries)
		rr.Configs = make([]kmsg.DescribeConfigsResponseResourceConfig, 0, len(entries))
		for i := range entries {
			// a list that is there but empty means all, too
			if len(resource.ConfigNames) == 0 || slices.Contains(resource.ConfigNames, entries[i].Name) {
				rr.Configs = append(rr.Configs, described(m, &entries[i]))
				size += sizeOf(&rr.Configs[len(rr.Configs)-1])
			}
		}
		resp.Resources = append(resp.Resources, rr)
	}
	r.ReplyMessage(resp)
}

// sizeOf is about what a setting takes in the answer.
func sizeOf(rc *kmsg.DescribeConfigsResponseResourceConfig) int {
	const fixed = 16
	size := fixed + len(rc.Name)
	if rc.Value != nil {
		size += len(*rc.Value)
	}
	if rc.Documentation != nil {
		size += len(*rc.Documentation)
	}
	for i := range rc.ConfigSynonyms {
		s := &rc.ConfigSynonyms[i]
		if size += fixed + len(s.Name); s.Value != nil {
			size += len(*s.Value)
		}
	}
	return size
}

// settingsOf finds the settings of a resource.
func settingsOf(c *Context, resource *kmsg.DescribeConfigsRequestResource) ([]config.Entry, error) {
	name := resource.ResourceName
	switch resource.ResourceType {
	case kmsg.ConfigResourceTypeTopic:
		if err := metadata.CheckTopicName(name); err != nil {
			return nil, &controller.Error{Kind: controller.InvalidTopicName, Message: err.Error()}
		}
		t := c.Image().Topic(name)
		if t == nil {
			return nil, &controller.Error{Kind: controller.UnknownTopic}
		}
		return asKafkaOrders(c.Config().DescribeTopic(overrides(t.Config))), nil
	case kmsg.ConfigResourceTypeBroker:
		if name == "" {
			return c.Config().DescribeDefaults(), nil
		}
		if err := c.thisBroker("Broker", name, " or empty string"); err != nil {
			return nil, err
		}
		return c.Config().DescribeBroker(), nil
	case kmsg.ConfigResourceTypeBrokerLogger:
		return c.loggers(name)
	}
	return nil, refuse("Unsupported resource type: %d", resource.ResourceType)
}

// topicOrder is the order in which Kafka answers the settings of a topic: that of a hash table. Java clients put them into another
// one, which keeps some of it, and Kafka's tools print that.
var topicOrder = strings.Fields(`compression.type remote.log.delete.on.disable leader.replication.throttled.replicas
	remote.storage.enable message.downconversion.enable min.insync.replicas segment.jitter.ms remote.log.copy.disable
	local.retention.ms cleanup.policy flush.ms follower.replication.throttled.replicas compression.lz4.level segment.bytes
	retention.ms compression.gzip.level flush.messages compression.zstd.level message.format.version max.compaction.lag.ms
	file.delete.delay.ms max.message.bytes min.compaction.lag.ms message.timestamp.type local.retention.bytes preallocate
	min.cleanable.dirty.ratio index.interval.bytes unclean.leader.election.enable retention.bytes delete.retention.ms
	message.timestamp.after.max.ms message.timestamp.before.max.ms segment.ms message.timestamp.difference.max.ms
	segment.index.bytes`)

func asKafkaOrders(entries []config.Entry) []config.Entry {
	slices.SortStableFunc(entries, func(a, b config.Entry) int {
		return cmp.Compare(slices.Index(topicOrder, a.Name), slices.Index(topicOrder, b.Name))
	})
	return entries
}

// thisBroker refuses the name of a broker resource that is not ours; what is Kafka's word for a broker there, also what else
// could have been named.
func (c *Context) thisBroker(what, name, also string) error {
	id, err := brokerID(name)
	if err != nil {
		return refuse("%s id must be an integer, but it is: %s", what, name)
	}
	if id != c.ID {
		return refuse("Unexpected broker id, expected %d%s, but received %s", c.ID, also, name)
	}
	return nil
}

// refuse is a refusal of a request, or an item of it, that makes no sense.
func refuse(format string, args ...any) error {
	return &controller.Error{Kind: controller.InvalidRequest, Message: fmt.Sprintf(format, args...)}
}

// described is one setting as the answer holds it.
func described(m *kmsg.DescribeConfigsRequest, e *config.Entry) kmsg.DescribeConfigsResponseResourceConfig {
	rc := kmsg.NewDescribeConfigsResponseResourceConfig()
	rc.Name, rc.Value, rc.ReadOnly, rc.IsSensitive = e.Name, e.Value, e.ReadOnly, e.Sensitive
	rc.IsDefault = e.Source == config.SourceDefault
	rc.Source, rc.ConfigType = kmsg.ConfigSource(e.Source), kmsg.ConfigType(e.Type)
	if m.IncludeSynonyms {
		for _, s := range e.Synonyms {
			rs := kmsg.NewDescribeConfigsResponseResourceConfigConfigSynonym()
			rs.Name, rs.Value, rs.Source = s.Name, s.Value, kmsg.ConfigSource(s.Source)
			rc.ConfigSynonyms = append(rc.ConfigSynonyms, rs)
		}
	}
	if m.IncludeDocumentation {
		rc.Documentation = optional(e.Doc)
	}
	if e.Source == config.SourceLogger {
		rc.ConfigSynonyms, rc.Documentation = nil, new(string)
	}
	return rc
}

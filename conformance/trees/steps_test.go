package trees

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// step is one thing done to both brokers; run gives the answer in a form that can be compared.
type step struct {
	name    string
	run     func(c *kgo.Client) string
	restart bool
	kill    bool // restart after a kill
	// kafka and kring are the answers where kring's differs on purpose.
	kafka, kring string
}

func word(code int16) string {
	if code == 0 {
		return "NONE"
	}
	return kerr.TypedErrorForCode(code).Message
}

func ask(c *kgo.Client, req kmsg.Request) (kmsg.Response, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return c.Broker(1).Request(ctx, req)
}

// topicOf describes a topic to be created.
type topicOf struct {
	name       string
	partitions int32
	factor     int16
	assignment [][]int32
	configs    []string // name=value, or name alone for null
}

func create(validateOnly bool, topics ...topicOf) func(*kgo.Client) string {
	return createAt(7, validateOnly, topics...)
}

// createAt asks in a version of the request; a negative one gives it no time.
func createAt(version int16, validateOnly bool, topics ...topicOf) func(*kgo.Client) string {
	return func(c *kgo.Client) string {
		req := kmsg.NewPtrCreateTopicsRequest()
		req.Version, req.TimeoutMillis, req.ValidateOnly = version, 20000, validateOnly
		if version < 0 {
			req.Version, req.TimeoutMillis = -version, 0
		}
		for _, x := range topics {
			t := kmsg.NewCreateTopicsRequestTopic()
			t.Topic, t.NumPartitions, t.ReplicationFactor = x.name, x.partitions, x.factor
			for p, r := range x.assignment {
				t.ReplicaAssignment = append(t.ReplicaAssignment,
					kmsg.CreateTopicsRequestTopicReplicaAssignment{Partition: int32(p), Replicas: r})
			}
			for _, s := range x.configs {
				name, value, set := strings.Cut(s, "=")
				e := kmsg.CreateTopicsRequestTopicConfig{Name: name}
				if set {
					e.Value = &value
				}
				t.Configs = append(t.Configs, e)
			}
			req.Topics = append(req.Topics, t)
		}
		resp, err := ask(c, req)
		if err != nil {
			return err.Error()
		}
		var out []string
		for _, x := range topics {
			for _, t := range resp.(*kmsg.CreateTopicsResponse).Topics {
				if t.Topic == x.name {
					out = append(out, fmt.Sprintf("%s %s partitions %d factor %d id %v", t.Topic, word(t.ErrorCode),
						t.NumPartitions, t.ReplicationFactor, t.TopicID != [16]byte{}))
				}
			}
		}
		return strings.Join(out, "; ")
	}
}

func remove(names ...string) func(*kgo.Client) string {
	return func(c *kgo.Client) string {
		req := kmsg.NewPtrDeleteTopicsRequest()
		req.TimeoutMillis = 20000
		req.TopicNames = names
		for _, n := range names {
			req.Topics = append(req.Topics, kmsg.DeleteTopicsRequestTopic{Topic: kmsg.StringPtr(n)})
		}
		return removed(c, req)
	}
}

func removed(c *kgo.Client, req *kmsg.DeleteTopicsRequest) string {
	resp, err := ask(c, req)
	if err != nil {
		return err.Error()
	}
	out := map[string]string{}
	for _, t := range resp.(*kmsg.DeleteTopicsResponse).Topics {
		name := "-"
		if t.Topic != nil {
			name = *t.Topic
		}
		out[name] = fmt.Sprint(word(t.ErrorCode), " id ", t.TopicID != [16]byte{})
	}
	return fmt.Sprint(out)
}

func removeByID(name string) func(*kgo.Client) string {
	return func(c *kgo.Client) string {
		req := kmsg.NewPtrDeleteTopicsRequest()
		req.TimeoutMillis = 20000
		id := [16]byte{1, 2, 3}
		if name != "" {
			meta := kmsg.NewPtrMetadataRequest()
			meta.Topics = []kmsg.MetadataRequestTopic{{Topic: &name}}
			resp, err := ask(c, meta)
			if err != nil {
				return err.Error()
			}
			id = resp.(*kmsg.MetadataResponse).Topics[0].TopicID
		}
		req.Topics = []kmsg.DeleteTopicsRequestTopic{{TopicID: id}}
		return removed(c, req)
	}
}

func grow(validateOnly bool, topic string, count int32, assignment ...[]int32) func(*kgo.Client) string {
	return func(c *kgo.Client) string {
		req := kmsg.NewPtrCreatePartitionsRequest()
		req.TimeoutMillis, req.ValidateOnly = 20000, validateOnly
		t := kmsg.CreatePartitionsRequestTopic{Topic: topic, Count: count}
		for _, r := range assignment {
			t.Assignment = append(t.Assignment, kmsg.CreatePartitionsRequestTopicAssignment{Replicas: r})
		}
		req.Topics = append(req.Topics, t)
		resp, err := ask(c, req)
		if err != nil {
			return err.Error()
		}
		return word(resp.(*kmsg.CreatePartitionsResponse).Topics[0].ErrorCode)
	}
}

// alter changes a configuration incrementally; ops are name=value, -name (delete), name+=value, name-=value, name (null).
func alter(kind kmsg.ConfigResourceType, name string, validateOnly bool, ops ...string) func(*kgo.Client) string {
	return func(c *kgo.Client) string {
		req := kmsg.NewPtrIncrementalAlterConfigsRequest()
		req.ValidateOnly = validateOnly
		r := kmsg.IncrementalAlterConfigsRequestResource{ResourceType: kind, ResourceName: name}
		for _, op := range ops {
			e := kmsg.IncrementalAlterConfigsRequestResourceConfig{}
			key, value, set := strings.Cut(op, "=")
			switch {
			case strings.HasPrefix(op, "-"):
				e.Op, key, set = kmsg.IncrementalAlterConfigOpDelete, key[1:], false
			case strings.HasSuffix(key, "+"):
				e.Op, key = kmsg.IncrementalAlterConfigOpAppend, key[:len(key)-1]
			case strings.HasSuffix(key, "-"):
				e.Op, key = kmsg.IncrementalAlterConfigOpSubtract, key[:len(key)-1]
			}
			if e.Name = key; set {
				e.Value = &value
			}
			r.Configs = append(r.Configs, e)
		}
		req.Resources = append(req.Resources, r)
		resp, err := ask(c, req)
		if err != nil {
			return err.Error()
		}
		return word(resp.(*kmsg.IncrementalAlterConfigsResponse).Resources[0].ErrorCode)
	}
}

// replace is the legacy AlterConfigs.
func replace(kind kmsg.ConfigResourceType, name string, values ...string) func(*kgo.Client) string {
	return func(c *kgo.Client) string {
		req := kmsg.NewPtrAlterConfigsRequest()
		r := kmsg.AlterConfigsRequestResource{ResourceType: kind, ResourceName: name}
		for _, v := range values {
			key, value, set := strings.Cut(v, "=")
			e := kmsg.AlterConfigsRequestResourceConfig{Name: key}
			if set {
				e.Value = &value
			}
			r.Configs = append(r.Configs, e)
		}
		req.Resources = append(req.Resources, r)
		resp, err := ask(c, req)
		if err != nil {
			return err.Error()
		}
		return word(resp.(*kmsg.AlterConfigsResponse).Resources[0].ErrorCode)
	}
}

// touch asks for a topic's metadata until it has leaders, letting the broker create it.
func touch(name string) func(*kgo.Client) string {
	return func(c *kgo.Client) string {
		for range 400 {
			req := kmsg.NewPtrMetadataRequest()
			req.Topics = []kmsg.MetadataRequestTopic{{Topic: &name}}
			req.AllowAutoTopicCreation = true
			resp, err := ask(c, req)
			if err != nil {
				return err.Error()
			}
			t := resp.(*kmsg.MetadataResponse).Topics[0]
			if kerr.IsRetriable(kerr.ErrorForCode(t.ErrorCode)) {
				time.Sleep(25 * time.Millisecond)
				continue
			}
			return fmt.Sprint(word(t.ErrorCode), " partitions ", len(t.Partitions))
		}
		return "it does not come"
	}
}

func producerID(c *kgo.Client) string {
	for range 400 {
		req := kmsg.NewPtrInitProducerIDRequest()
		resp, err := ask(c, req)
		if err != nil {
			return err.Error()
		}
		r := resp.(*kmsg.InitProducerIDResponse)
		if kerr.IsRetriable(kerr.ErrorForCode(r.ErrorCode)) {
			time.Sleep(25 * time.Millisecond)
			continue
		}
		return fmt.Sprint(word(r.ErrorCode), " ", r.ProducerID, " ", r.ProducerEpoch)
	}
	return "no id comes"
}

const (
	topicKind  = kmsg.ConfigResourceTypeTopic
	brokerKind = kmsg.ConfigResourceTypeBroker
)

var steps = []step{
	{name: "topic with configs", run: create(false, topicOf{"t1", 3, 1, nil, []string{"retention.ms=3600000", "cleanup.policy=delete"}})},
	{name: "topic with assignment", run: create(false, topicOf{"t2", -1, -1, [][]int32{{1}, {1}}, nil})},
	{name: "topic with defaults", run: create(false, topicOf{"t3", -1, -1, nil, nil})},
	{name: "several topics", run: create(false, topicOf{"m1", 1, 1, nil, nil},
		topicOf{"m2", 12, 1, nil, []string{"segment.bytes=1048576"}}, topicOf{"m3", 2, 1, nil, nil})},
	{name: "older version", run: createAt(3, false, topicOf{"v3", 2, 1, nil, nil})},
	{name: "only validated", run: create(true, topicOf{"nothing", 3, 1, nil, nil}, topicOf{"t1", 1, 1, nil, nil})},
	{name: "exists", run: create(false, topicOf{"t1", 3, 1, nil, nil})},
	{name: "exists, and is asked for wrongly", run: create(false, topicOf{"t1", 0, 9, nil, []string{"x"}})},
	{name: "bad names", run: create(false, topicOf{"a b", 1, 1, nil, nil}, topicOf{".", 1, 1, nil, nil}, topicOf{"", 1, 1, nil, nil},
		topicOf{strings.Repeat("x", 250), 1, 1, nil, nil})},
	{name: "name with a dot", run: create(false, topicOf{"a.b", 1, 1, nil, nil})},
	{name: "collision", run: create(false, topicOf{"a_b", 1, 1, nil, nil})},
	{name: "no partitions", run: create(false, topicOf{"n1", 0, 1, nil, nil}, topicOf{"n2", -2, 1, nil, nil})},
	{name: "bad replication factors", run: create(false, topicOf{"n1", 1, 0, nil, nil},
		topicOf{"n2", 1, 2, nil, nil}, topicOf{"n3", 1, -2, nil, nil})},
	{name: "bad name and no partitions", run: create(false, topicOf{"a b", 0, 1, nil, nil})},
	{name: "unknown broker", run: create(true, topicOf{"n1", -1, -1, [][]int32{{7}}, nil})},
	{name: "replica twice", run: create(false, topicOf{"n1", -1, -1, [][]int32{{1, 1}}, nil})},
	{name: "unequal replicas", run: create(false, topicOf{"n1", -1, -1, [][]int32{{1}, {1, 2}}, nil})},
	// Kafka would make a topic without replicas, which nobody can ever use.
	{name: "no replicas", run: create(true, topicOf{"n1", -1, -1, [][]int32{{}, {}}, nil}),
		kafka: "n1 NONE partitions 2 factor 0 id false", kring: "n1 INVALID_REPLICA_ASSIGNMENT partitions -1 factor -1 id false"},
	{name: "assignment and numbers", run: create(false, topicOf{"n1", 1, 1, [][]int32{{1}}, nil})},
	{name: "bad config", run: create(false, topicOf{"n1", 1, 1, nil, []string{"retention.ms=x"}},
		topicOf{"n2", 1, 1, nil, []string{"no.such.config=1"}})},
	{name: "null config", run: create(false, topicOf{"n1", 1, 1, nil, []string{"retention.ms"}})},
	{name: "partitions added", run: grow(false, "t2", 4)},
	{name: "partitions added by assignment", run: grow(false, "t2", 6, []int32{1}, []int32{1})},
	{name: "partitions only validated", run: grow(true, "t2", 7)},
	{name: "fewer partitions", run: grow(false, "t2", 3)},
	{name: "as many partitions", run: grow(false, "t2", 6)},
	{name: "partitions of an unknown topic", run: grow(false, "nobody", 6)},
	{name: "partitions on an unknown broker", run: grow(false, "t2", 7, []int32{9})},
	{name: "too many assignments", run: grow(false, "t2", 7, []int32{1}, []int32{1})},
	{name: "partition without replicas", run: grow(false, "t2", 7, []int32{})},
	{name: "partition with too many replicas", run: grow(false, "t2", 7, []int32{1, 1})},
	{name: "config set", run: alter(topicKind, "t1", false, "retention.ms=7200000", "segment.bytes=1048576")},
	{name: "config set to the same", run: alter(topicKind, "t1", false, "retention.ms=7200000")},
	{name: "config appended", run: alter(topicKind, "t1", false, "cleanup.policy+=compact")},
	{name: "config appended again", run: alter(topicKind, "t1", false, "cleanup.policy+=compact")},
	{name: "config subtracted", run: alter(topicKind, "t1", false, "cleanup.policy-=delete")},
	{name: "config appended to the default", run: alter(topicKind, "t3", false, "cleanup.policy+=compact")},
	{name: "config deleted", run: alter(topicKind, "t1", false, "-retention.ms")},
	{name: "config deleted that is not set", run: alter(topicKind, "t1", false, "-flush.ms")},
	{name: "config only validated", run: alter(topicKind, "t1", true, "flush.ms=5")},
	{name: "config of an unknown topic", run: alter(topicKind, "nobody", false, "retention.ms=1")},
	{name: "config twice", run: alter(topicKind, "t1", false, "retention.ms=1", "retention.ms=2")},
	{name: "config null", run: alter(topicKind, "t1", false, "retention.ms")},
	{name: "config with a bad value", run: alter(topicKind, "t1", false, "retention.ms=x")},
	{name: "config with a bad name", run: alter(topicKind, "t1", false, "no.such.config=1")},
	{name: "config appended to no list", run: alter(topicKind, "t1", false, "retention.ms+=1")},
	// Kafka stumbles over the name it does not know.
	{name: "config appended to a bad name", run: alter(topicKind, "t1", false, "no.such.config+=1"),
		kafka: "UNKNOWN_SERVER_ERROR", kring: "INVALID_CONFIG"},
	{name: "config replaced", run: replace(topicKind, "t1", "max.message.bytes=2000000")},
	{name: "config emptied", run: replace(topicKind, "t1")},
	{name: "config replaced by a bad value", run: replace(topicKind, "t1", "max.message.bytes=-5")},
	{name: "config replaced by null", run: replace(topicKind, "t1", "max.message.bytes")},
	{name: "config of an unknown topic replaced", run: replace(topicKind, "nobody", "max.message.bytes=5")},
	{name: "broker config", run: alter(brokerKind, "1", false, "message.max.bytes=2000000")},
	{name: "broker default config", run: alter(brokerKind, "", false, "message.max.bytes=3000000")},
	{name: "broker config deleted", run: alter(brokerKind, "1", false, "-message.max.bytes")},
	{name: "broker default config deleted", run: alter(brokerKind, "", false, "-message.max.bytes")},
	{name: "broker config of another", run: alter(brokerKind, "7", false, "message.max.bytes=2000000")},
	{name: "broker config of no number", run: alter(brokerKind, "x", false, "message.max.bytes=2000000")},
	{name: "broker config with a bad value", run: alter(brokerKind, "1", false, "message.max.bytes=x")},
	{name: "broker config with a bad value replaced", run: replace(brokerKind, "1", "message.max.bytes=x")},
	{name: "broker config replaced", run: replace(brokerKind, "1", "message.max.bytes=2500000")},
	{name: "broker config emptied", run: replace(brokerKind, "1")},
	{name: "broker config that is fixed", run: alter(brokerKind, "1", false, "broker.id=7")},
	{name: "quotas set", run: quota("user=bob", "producer_byte_rate=1048576", "request_percentage=50.5")},
	{name: "quotas of a client", run: quota("client-id=app 1", "consumer_byte_rate=1e12")},
	{name: "quotas of a user's client", run: quota("user=b+ *\u00f6b client-id=app/1", "controller_mutation_rate=1e7")},
	{name: "quotas by default", run: quota("user client-id", "request_percentage=0.0001")},
	{name: "quotas of an address", run: quota("ip=127.0.0.9", "connection_creation_rate=100")},
	{name: "quotas changed", run: quota("user=bob", "producer_byte_rate=2048", "request_percentage")},
	{name: "quotas taken away", run: quota("client-id=app 1", "consumer_byte_rate")},
	{name: "quotas taken away where there are none", run: quota("user=nobody", "consumer_byte_rate")},
	{name: "quotas of a user's second client", run: quota("user=b+ *\u00f6b client-id", "controller_mutation_rate=5")},
	{name: "quotas of a user with clients", run: quota("user=b+ *\u00f6b", "producer_byte_rate=5")},
	{name: "quotas of a user with clients taken away", run: quota("user=b+ *\u00f6b", "producer_byte_rate")},
	{name: "quotas of a client of two taken away", run: quota("user=b+ *\u00f6b client-id=app/1", "controller_mutation_rate")},
	{name: "quotas of the last client taken away", run: quota("user=b+ *\u00f6b client-id", "controller_mutation_rate")},
	{name: "quotas refused", run: quota("user=bob", "consumer_byte_rate=5", "colour=1")},
	{name: "topics on brokers that are not there", run: create(false, topicOf{"near", -1, -1, [][]int32{{1, 2}}, nil},
		topicOf{"turned", -1, -1, [][]int32{{2, 1}}, nil})},
	{name: "elections", run: elect(false, "t1", "near", "turned", "nobody")},
	{name: "unclean elections", run: elect(true, "t1", "turned")},
	{name: "reassigned to the same", run: reassign("t1", 1)},
	{name: "reassigned away from who is not there", run: reassign("turned", 1)},
	{name: "reassigned, led as before", run: reassign("near", 1)},
	{name: "reassigned to who is not there", run: reassign("t1", 1, 2)},
	{name: "reassigned to nobody", run: reassign("t1", []int32{}...)},
	{name: "reassignment cancelled", run: reassign("t1")},
	{name: "reassigned, a topic that is not there", run: reassign("nobody", 1)},
	{name: "elections after it", run: elect(false, "t1", "near", "turned")},
	{name: "automatic creation", run: touch("auto")},
	{name: "automatic creation of a bad name", run: touch("au to")},
	{name: "automatic creation of a colliding name", run: touch("a_b")},
	{name: "producer id", run: producerID},
	{name: "second producer id", run: producerID},
	{name: "topic deleted", run: remove("t2")},
	{name: "topics deleted, one unknown", run: remove("m1", "nobody", "m3")},
	{name: "topic deleted by id", run: removeByID("t3")},
	{name: "topic deleted by unknown id", run: removeByID("")},
	{name: "made again", run: create(false, topicOf{"t2", 1, 1, nil, []string{"flush.ms=7"}})},
	{name: "restart", restart: true},
	{name: "producer id after the restart", run: producerID},
	{name: "topic after the restart", run: create(false, topicOf{"t4", 2, 1, nil, nil})},
	{name: "deleted after the restart", run: remove("t1", "m2")},
	{name: "restart after a kill", restart: true, kill: true},
	{name: "topic after the kill", run: create(false, topicOf{"t5", 2, 1, nil, nil})},
	{name: "partitions after the kill", run: grow(false, "t4", 3)},
	{name: "producer id after the kill", run: producerID},
	{name: "not waited for", run: createAt(-7, false, topicOf{"hasty", 1, 1, nil, nil})},
	{name: "second restart", restart: true},
}

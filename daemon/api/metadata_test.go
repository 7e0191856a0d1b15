package api

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/config"
	"kring/metadata"
	"kring/wire"
)

// roundTrip sends a request in one version and reads the answer.
func roundTrip[R kmsg.Response](h *host, m kmsg.Request, version int16, into R) R {
	h.t.Helper()
	m.SetVersion(version)
	head := wire.RequestHeader{Key: m.Key(), Version: version, CorrelationID: 5, ClientID: []byte("x")}
	frame := m.AppendTo(wire.AppendRequestHeader(make([]byte, 4), &head))
	wire.PutFrameSize(frame, 0)
	b := h.ask(frame)
	if b == nil {
		h.t.Fatalf("%s %d: closed", wire.Name(m.Key()), version)
	}
	into.SetVersion(version)
	if err := into.ReadFrom(b[4+wire.ResponseHeaderSize(m.Key(), version):]); err != nil {
		h.t.Fatalf("%s %d: %v", wire.Name(m.Key()), version, err)
	}
	return into
}

func topics(names ...string) []kmsg.MetadataRequestTopic {
	all := []kmsg.MetadataRequestTopic{}
	for _, n := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = &n
		all = append(all, t)
	}
	return all
}

// metadataHost knows three brokers, one of them without our listener, and one topic.
func metadataHost(t *testing.T) *host {
	e := metadata.NewImage().Edit()
	e.Controller(1, 1)
	here := metadata.Endpoint{Listener: "PLAINTEXT", Protocol: "PLAINTEXT", Host: "one", Port: 9092}
	e.SetBroker(&metadata.Broker{ID: 1, Endpoints: []metadata.Endpoint{here}, Rack: "r1"})
	here.Host = "two"
	e.SetBroker(&metadata.Broker{ID: 2, Endpoints: []metadata.Endpoint{here}})
	here.Listener = "OTHER"
	e.SetBroker(&metadata.Broker{ID: 3, Endpoints: []metadata.Endpoint{here}})
	e.SetTopic(&metadata.Topic{Name: "words", ID: metadata.TopicID{1, 2, 3}, Partitions: []metadata.Partition{
		{Leader: 1, LeaderEpoch: 7, ISR: []int32{1, 2}, Replicas: []int32{1, 2}},
		{Leader: 3, LeaderEpoch: 8, ISR: []int32{3}, Replicas: []int32{3, 1}},
		{Leader: 4, LeaderEpoch: 9, ISR: []int32{4}, Replicas: []int32{4}},
	}})
	h := newHost(t, e.Image())
	conf, _, err := config.Load("", []string{"auto.create.topics.enable=false"})
	if err != nil {
		t.Fatal(err)
	}
	h.c.SetConfig(conf)
	return h
}

func TestMetadataDescribesTheCluster(t *testing.T) {
	h := metadataHost(t)
	for v := int16(0); v <= 12; v++ {
		m := kmsg.NewPtrMetadataRequest()
		m.Topics = topics("words", "words", "none", "bad/name", "")
		resp := roundTrip(h, m, v, kmsg.NewPtrMetadataResponse())
		if len(resp.Brokers) != 2 || resp.Brokers[0].NodeID != 1 || resp.Brokers[1].Host != "two" {
			t.Fatalf("version %d: brokers %+v", v, resp.Brokers)
		}
		if v >= 1 && (resp.ControllerID != 1 || resp.Brokers[0].Rack == nil || resp.Brokers[1].Rack != nil) {
			t.Errorf("version %d: %+v", v, resp)
		}
		if v >= 2 && (resp.ClusterID == nil || *resp.ClusterID != "TestClusterTestCluster") {
			t.Errorf("version %d: cluster id %v", v, resp.ClusterID)
		}
		if len(resp.Topics) != 4 {
			t.Fatalf("version %d: %d topics", v, len(resp.Topics))
		}
		for i, want := range []wire.Code{wire.None, wire.UnknownTopicOrPartition, wire.InvalidTopicException, wire.InvalidTopicException} {
			if got := wire.Code(resp.Topics[i].ErrorCode); got != want {
				t.Errorf("version %d: topic %d: %v, not %v", v, i, got, want)
			}
		}
		checkWords(t, v, &resp.Topics[0])
	}
}

func checkWords(t *testing.T, v int16, topic *kmsg.MetadataResponseTopic) {
	t.Helper()
	p := topic.Partitions
	if len(p) != 3 {
		t.Fatalf("version %d: %d partitions", v, len(p))
	}
	if p[0].ErrorCode != 0 || p[0].Leader != 1 || v >= 7 && p[0].LeaderEpoch != 7 || len(p[0].Replicas) != 2 || len(p[0].ISR) != 2 {
		t.Errorf("version %d: %+v", v, p[0])
	}
	want := wire.LeaderNotAvailable // alive, without our listener
	if v >= 6 {
		want = wire.ListenerNotFound
	}
	if wire.Code(p[1].ErrorCode) != want || p[1].Leader != -1 {
		t.Errorf("version %d: %+v", v, p[1])
	}
	if wire.Code(p[2].ErrorCode) != wire.LeaderNotAvailable || p[2].Leader != -1 {
		t.Errorf("version %d: %+v", v, p[2])
	}
	if v >= 5 && (len(p[0].OfflineReplicas) != 0 || len(p[1].OfflineReplicas) != 1 || p[1].OfflineReplicas[0] != 3) {
		t.Errorf("version %d: offline %v and %v", v, p[0].OfflineReplicas, p[1].OfflineReplicas)
	}
	if v >= 10 && topic.TopicID != [16]byte{1, 2, 3} {
		t.Errorf("version %d: id %v", v, topic.TopicID)
	}
}

func TestMetadataAllOrNone(t *testing.T) {
	h := metadataHost(t)
	for v := int16(0); v <= 12; v++ {
		for _, null := range []bool{true, false} {
			m := kmsg.NewPtrMetadataRequest()
			if !null {
				m.Topics = topics()
			}
			want := 1
			if !null && v > 0 {
				want = 0
			}
			if got := roundTrip(h, m, v, kmsg.NewPtrMetadataResponse()); len(got.Topics) != want {
				t.Errorf("version %d, null %v: %d topics", v, null, len(got.Topics))
			}
		}
	}
}

func TestMetadataByID(t *testing.T) {
	h := metadataHost(t)
	known, unknown := kmsg.NewMetadataRequestTopic(), kmsg.NewMetadataRequestTopic()
	known.TopicID, unknown.TopicID = [16]byte{1, 2, 3}, [16]byte{9}
	m := kmsg.NewPtrMetadataRequest()
	m.Topics = []kmsg.MetadataRequestTopic{unknown, known}
	resp := roundTrip(h, m, 12, kmsg.NewPtrMetadataResponse())
	if len(resp.Topics) != 2 || wire.Code(resp.Topics[0].ErrorCode) != wire.UnknownTopicID || resp.Topics[0].Topic != nil {
		t.Fatalf("%+v", resp.Topics)
	}
	if *resp.Topics[1].Topic != "words" || len(resp.Topics[1].Partitions) != 3 {
		t.Errorf("%+v", resp.Topics[1])
	}
	name := "words"
	known.Topic = &name
	m.Topics = []kmsg.MetadataRequestTopic{known} // ids are not for version 10 and 11
	resp = roundTrip(h, m, 10, kmsg.NewPtrMetadataResponse())
	if len(resp.Topics) != 1 || wire.Code(resp.Topics[0].ErrorCode) != wire.InvalidRequest {
		t.Errorf("%+v", resp.Topics)
	}
}

func TestMetadataAuthorizedOperations(t *testing.T) {
	h := metadataHost(t)
	m := kmsg.NewPtrMetadataRequest()
	m.Topics = topics("words")
	resp := roundTrip(h, m, 8, kmsg.NewPtrMetadataResponse())
	if resp.AuthorizedOperations != -1<<31 || resp.Topics[0].AuthorizedOperations != -1<<31 {
		t.Errorf("told without being asked: %d, %d", resp.AuthorizedOperations, resp.Topics[0].AuthorizedOperations)
	}
	m.IncludeClusterAuthorizedOperations, m.IncludeTopicAuthorizedOperations = true, true
	resp = roundTrip(h, m, 8, kmsg.NewPtrMetadataResponse())
	if resp.AuthorizedOperations != 8096 || resp.Topics[0].AuthorizedOperations != 3576 {
		t.Errorf("%d, %d", resp.AuthorizedOperations, resp.Topics[0].AuthorizedOperations)
	}
}

func TestDescribeCluster(t *testing.T) {
	h := metadataHost(t)
	m := kmsg.NewPtrDescribeClusterRequest()
	m.EndpointType = 1
	for v := int16(0); v <= 1; v++ {
		resp := roundTrip(h, m, v, kmsg.NewPtrDescribeClusterResponse())
		if resp.ErrorCode != 0 || resp.ClusterID != "TestClusterTestCluster" || resp.ControllerID != 1 || len(resp.Brokers) != 2 {
			t.Errorf("version %d: %+v", v, resp)
		}
	}
	m.EndpointType = 2
	if resp := roundTrip(h, m, 1, kmsg.NewPtrDescribeClusterResponse()); wire.Code(resp.ErrorCode) != wire.MismatchedEndpointType {
		t.Errorf("%+v", resp)
	}
}

func TestDescribeConfigs(t *testing.T) {
	h := metadataHost(t)
	e := h.c.Image().Edit()
	e.SetTopic(&metadata.Topic{Name: "set", Config: metadata.Config{{Name: "retention.ms", Value: "1000"}}})
	h.c.SetImage(e.Image())
	m := kmsg.NewPtrDescribeConfigsRequest()
	m.IncludeSynonyms = true
	for _, r := range []struct {
		kind kmsg.ConfigResourceType
		name string
	}{{2, "set"}, {2, "none"}, {2, "bad/name"}, {4, "1"}, {4, "2"}, {4, "x"}, {4, ""}, {8, "1"}, {1, "x"}} {
		resource := kmsg.NewDescribeConfigsRequestResource()
		resource.ResourceType, resource.ResourceName = r.kind, r.name
		if r.name == "set" {
			resource.ConfigNames = []string{"retention.ms", "segment.bytes", "unknown"}
		}
		m.Resources = append(m.Resources, resource)
	}
	resp := roundTrip(h, m, 4, kmsg.NewPtrDescribeConfigsResponse())
	for i, want := range []wire.Code{wire.None, wire.UnknownTopicOrPartition, wire.InvalidTopicException, wire.None, wire.InvalidRequest,
		wire.InvalidRequest, wire.None, wire.None, wire.InvalidRequest} {
		if got := wire.Code(resp.Resources[i].ErrorCode); got != want {
			t.Errorf("resource %d: %v, not %v", i, got, want)
		}
	}
	set := resp.Resources[0].Configs
	if len(set) != 2 {
		t.Fatalf("%+v", set)
	}
	for _, c := range set {
		switch c.Name {
		case "retention.ms":
			if *c.Value != "1000" || c.Source != 1 || len(c.ConfigSynonyms) < 1 || c.ConfigSynonyms[0].Source != 1 {
				t.Errorf("%+v", c)
			}
		case "segment.bytes":
			if *c.Value != "1073741824" || c.Source != 5 {
				t.Errorf("%+v", c)
			}
		}
	}
	if len(resp.Resources[3].Configs) < 100 {
		t.Errorf("%d settings of the broker", len(resp.Resources[3].Configs))
	}
}

package broker

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/wire"
)

// FuzzPort sends any bytes to a whole broker: it must neither crash nor stall nor grow, and must serve others as before.
func FuzzPort(f *testing.F) {
	for key := int16(0); key <= wire.KeyMax; key++ {
		lowest, highest, ok := wire.Supported(key)
		if !ok {
			continue
		}
		for _, v := range []int16{lowest, highest} {
			f.Add(seedFrame(key, v), uint8(3))
		}
	}
	f.Add(frameOf(produceRequest("k", 0, 0, words("a", "b"))), uint8(40))
	f.Add(append(frameOf(produceRequest("k", 1, -1, words("a", "b"))), frameOf(produceRequest("k", 2, 1, words("c")))...), uint8(250))
	f.Fuzz(func(t *testing.T, data []byte, cut uint8) {
		if len(data) > 1<<16 {
			return
		}
		s := newSim(t, 2, 1)
		s.start("log.segment.delete.delay.ms=0", "num.partitions=3", "connections.max.idle.ms=30000")
		good := connect(t, s)
		good.createTopic("k", 3)
		bad := s.w.Dial(simAddr)
		for len(data) > 0 {
			n := min(int(cut)+1, len(data))
			bad.Send(data[:n])
			data = data[n:]
		}
		s.w.RunFor(time.Second)
		for _, l := range s.all {
			if n := l.InUse(); n > 16<<20 {
				t.Fatalf("%d bytes lent out", n)
			}
		}
		m := kmsg.NewPtrMetadataRequest()
		if got := ask[*kmsg.MetadataResponse](good, m, 12); len(got.Brokers) != 1 {
			t.Fatalf("%+v", got)
		}
		answers := bad.Buffered()
		for len(answers) >= 4 {
			n := int(binary.BigEndian.Uint32(answers))
			if n < 4 || n > len(answers)-4 {
				t.Fatalf("an answer of %d bytes where %d are", n, len(answers)-4)
			}
			answers = answers[4+n:]
		}
		bad.Close()
		s.stop()
	})
}

func frameOf(m kmsg.Request) []byte {
	head := wire.RequestHeader{Key: m.Key(), Version: m.GetVersion(), CorrelationID: 9, ClientID: []byte("fuzz")}
	frame := m.AppendTo(wire.AppendRequestHeader(make([]byte, 4), &head))
	wire.PutFrameSize(frame, 0)
	return frame
}

// seedFrame is a request with little in it.
func seedFrame(key, version int16) []byte {
	m := kmsg.RequestForKey(key)
	m.SetVersion(version)
	name := "k"
	switch m := m.(type) {
	case *kmsg.FetchRequest:
		m.MinBytes, m.MaxBytes, m.SessionEpoch = 1, 1000, -1
		m.Topics = []kmsg.FetchRequestTopic{{Topic: name, Partitions: []kmsg.FetchRequestTopicPartition{{PartitionMaxBytes: 1000, CurrentLeaderEpoch: -1}}}}
	case *kmsg.ListOffsetsRequest:
		m.ReplicaID = -1
		m.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: name, Partitions: []kmsg.ListOffsetsRequestTopicPartition{{Timestamp: -1, CurrentLeaderEpoch: -1}}}}
	case *kmsg.MetadataRequest:
		m.Topics, m.AllowAutoTopicCreation = []kmsg.MetadataRequestTopic{{Topic: &name}}, true
	case *kmsg.CreateTopicsRequest:
		m.Topics = []kmsg.CreateTopicsRequestTopic{{Topic: "new", NumPartitions: 2, ReplicationFactor: 1}}
	case *kmsg.DeleteTopicsRequest:
		m.TopicNames, m.Topics = []string{name}, []kmsg.DeleteTopicsRequestTopic{{Topic: &name}}
	case *kmsg.CreatePartitionsRequest:
		m.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: name, Count: 5}}
	case *kmsg.DescribeConfigsRequest:
		m.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: 2, ResourceName: name}}
	case *kmsg.DeleteRecordsRequest:
		m.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: name, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Offset: -1}}}}
	case *kmsg.InitProducerIDRequest:
		m.ProducerID, m.ProducerEpoch = -1, -1
	case *kmsg.DescribeLogDirsRequest:
		m.Topics = []kmsg.DescribeLogDirsRequestTopic{{Topic: name, Partitions: []int32{0, 9}}}
	case *kmsg.DescribeProducersRequest:
		m.Topics = []kmsg.DescribeProducersRequestTopic{{Topic: name, Partitions: []int32{0, 9}}}
	case *kmsg.ElectLeadersRequest:
		m.Topics = []kmsg.ElectLeadersRequestTopic{{Topic: name, Partitions: []int32{0, 9}}}
	case *kmsg.AlterPartitionAssignmentsRequest:
		m.Topics = []kmsg.AlterPartitionAssignmentsRequestTopic{{Topic: name,
			Partitions: []kmsg.AlterPartitionAssignmentsRequestTopicPartition{{Replicas: []int32{1001}}, {Partition: 1}}}}
	case *kmsg.CreateACLsRequest:
		m.Creations = []kmsg.CreateACLsRequestCreation{{ResourceName: name}}
	case *kmsg.DeleteACLsRequest:
		m.Filters = []kmsg.DeleteACLsRequestFilter{{ResourceName: &name}}
	case *kmsg.DescribeClientQuotasRequest:
		m.Components = []kmsg.DescribeClientQuotasRequestComponent{{EntityType: "user", Match: &name}}
	case *kmsg.AlterClientQuotasRequest:
		m.Entries = []kmsg.AlterClientQuotasRequestEntry{{Entity: []kmsg.AlterClientQuotasRequestEntryEntity{{Type: "user", Name: &name}},
			Ops: []kmsg.AlterClientQuotasRequestEntryOp{{Key: "producer_byte_rate", Value: 5}}}}
	case *kmsg.DescribeUserSCRAMCredentialsRequest:
		m.Users = []kmsg.DescribeUserSCRAMCredentialsRequestUser{{Name: name}}
	case *kmsg.UpdateFeaturesRequest:
		m.FeatureUpdates = []kmsg.UpdateFeaturesRequestFeatureUpdate{{Feature: name, MaxVersionLevel: 1}}
	case *kmsg.WriteTxnMarkersRequest:
		m.Markers = []kmsg.WriteTxnMarkersRequestMarker{end(7, true, 1, name, 0, 9), end(7, false, 2, "__consumer_offsets", 0)}
	case *kmsg.ListTransactionsRequest:
		m.StateFilters = []string{name, "Ongoing"}
	case *kmsg.ApiVersionsRequest:
		m.ClientSoftwareName, m.ClientSoftwareVersion = "a", "1"
	}
	return frameOf(m)
}

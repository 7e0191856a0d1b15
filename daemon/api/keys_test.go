package api

import (
	"encoding/json"
	"os"
	"testing"

	"kring/wire"
)

// leftOut are the keys that Kafka 3.9 advertises and we do not, with what is missing.
var leftOut = map[int16]string{
	wire.LeaderAndISR: "a cluster", wire.StopReplica: "a cluster", wire.UpdateMetadata: "a cluster", wire.ControlledShutdown: "a cluster",
	wire.AlterPartition: "a cluster", wire.Envelope: "a cluster", wire.AllocateProducerIDs: "a cluster",
	wire.AddPartitionsToTxn: "transactions", wire.AddOffsetsToTxn: "transactions", wire.EndTxn: "transactions",
	wire.TxnOffsetCommit: "transactions", wire.DescribeTransactions: "transactions",
	wire.AlterReplicaLogDirs:       "moving replicas between log dirs",
	wire.AlterUserScramCredentials: "SASL",
	wire.ConsumerGroupHeartbeat:    "the protocol of KIP-848, which Kafka refuses too", wire.ConsumerGroupDescribe: "the protocol of KIP-848",
}

// TestEveryKeyOfKafkasIsServedOrLeftOut: no API is forgotten, and none is both.
func TestEveryKeyOfKafkasIsServedOrLeftOut(t *testing.T) {
	text, err := os.ReadFile("testdata/api-versions.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Keys []struct{ Key int16 } }
	if err := json.Unmarshal(text, &all); err != nil || len(all.Keys) != 62 {
		t.Fatalf("%d keys (%v)", len(all.Keys), err)
	}
	kafkas := map[int16]bool{}
	for _, k := range all.Keys {
		kafkas[k.Key] = true
		if why, out := leftOut[k.Key]; out == (table[k.Key] != nil) {
			t.Errorf("%s: served %v, left out for want of %q", wire.Name(k.Key), table[k.Key] != nil, why)
		}
	}
	for _, r := range rows() {
		if !kafkas[r.key] {
			t.Errorf("%s is none of Kafka's", wire.Name(r.key))
		}
	}
	for key := range leftOut {
		if !kafkas[key] {
			t.Errorf("%d is left out and none of Kafka's", key)
		}
	}
}

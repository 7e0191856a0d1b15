package main

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestLogLevelIsSetByClients: as the level of Kafka's root logger, and as a setting.
func TestLogLevelIsSetByClients(t *testing.T) {
	b := start(t, t.TempDir()+"/data", "broker.id=1")
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.addr))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	set := func(kind kmsg.ConfigResourceType, name, value string) {
		t.Helper()
		m := kmsg.NewPtrIncrementalAlterConfigsRequest()
		m.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{ResourceType: kind, ResourceName: "1",
			Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: name, Value: &value}}}}
		resp, err := m.RequestWith(t.Context(), cl)
		if err != nil || resp.Resources[0].ErrorCode != 0 {
			t.Fatalf("%+v, %v", resp, err)
		}
	}
	level := func() string {
		t.Helper()
		m := kmsg.NewPtrDescribeConfigsRequest()
		m.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeBrokerLogger, ResourceName: "1"}}
		resp, err := m.RequestWith(t.Context(), cl)
		if err != nil || len(resp.Resources) != 1 || len(resp.Resources[0].Configs) != 1 || resp.Resources[0].Configs[0].Name != "root" {
			t.Fatalf("%+v, %v", resp, err)
		}
		return *resp.Resources[0].Configs[0].Value
	}
	creates := func(topic string, logged bool) {
		t.Helper()
		b.kring("", "topics", "create", topic).ok(t)
		if logged && !b.said.wait("topic="+topic, b.done) || !logged && strings.Contains(b.said.String(), "topic="+topic) {
			t.Errorf("%s: logged %v is wrong:\n%s", topic, logged, b.said.String())
		}
	}
	if got := level(); got != "INFO" {
		t.Error(got)
	}
	creates("at-info", true)
	set(kmsg.ConfigResourceTypeBrokerLogger, "root", "ERROR")
	if got := level(); got != "ERROR" {
		t.Error(got)
	}
	creates("at-error", false)
	set(kmsg.ConfigResourceTypeBroker, "message.max.bytes", "2000000") // another setting leaves the level
	if got := level(); got != "ERROR" {
		t.Error(got)
	}
	set(kmsg.ConfigResourceTypeBroker, "kring.log.level", "debug")
	creates("at-debug", true)
	if got := level(); got != "DEBUG" {
		t.Error(got)
	}
}

package api

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/metadata"
	"kring/wire"
)

// A request of a megabyte names one topic a hundred thousand times: the answer must stay of a size.
func TestDescribedConfigsAreBounded(t *testing.T) {
	h := metadataHost(t)
	e := h.c.Image().Edit()
	e.SetTopic(&metadata.Topic{Name: "set"})
	h.c.SetImage(e.Image())
	m := kmsg.NewPtrDescribeConfigsRequest()
	m.IncludeSynonyms, m.IncludeDocumentation = true, true
	m.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: 4, ResourceName: "1"}}
	for range 100_000 {
		m.Resources = append(m.Resources, kmsg.DescribeConfigsRequestResource{ResourceType: 2, ResourceName: "set"})
	}
	resp := roundTrip(h, m, 4, kmsg.NewPtrDescribeConfigsResponse())
	if n := len(resp.AppendTo(nil)); n > 8<<20 {
		t.Errorf("an answer of %d bytes", n)
	}
	for i := range resp.Resources {
		want := wire.None
		if i > 1 { // the first two are the broker and the topic
			want = wire.InvalidRequest
		}
		if got := wire.Code(resp.Resources[i].ErrorCode); got != want {
			t.Fatalf("resource %d: %v, not %v", i, got, want)
		}
	}
}

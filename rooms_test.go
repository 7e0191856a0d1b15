package kring

import (
	"os"
	"strings"
	"testing"
)

// room says what a folder of Go code may see and how it must be made. Tests may import more.
type room struct {
	sees    string // rooms of ours it may import
	outside string // modules (or packages of a module) from outside
	pure    bool   // no goroutine, clock, lock, disk or network but through ring.Loop, so that simring replays it
	state   bool   // holds state that must keep invariants, so it has an invariants.go
}

// house is the map. Arrows point down only; ARCHITECTURE.md draws it.
var house = map[string]room{
	"wire/batch": {outside: "github.com/klauspost/compress github.com/pierrec/lz4/v4", pure: true},
	"wire":       {sees: "wire/batch", outside: "github.com/twmb/franz-go/pkg/kmsg", pure: true},

	"ring":          {outside: "golang.org/x/sys"},
	"ring/simring":  {sees: "ring"},
	"ring/ringtest": {sees: "ring"},

	"segment": {sees: "ring wire/batch", pure: true, state: true},

	"metadata":           {pure: true},
	"metadata/embedded":  {sees: "metadata ring", pure: true, state: true},
	"metadata/storetest": {sees: "metadata ring"},

	"replication":            {sees: "segment metadata ring wire wire/batch", outside: "github.com/twmb/franz-go/pkg/kmsg", pure: true, state: true},
	"replication/controller": {sees: "metadata ring", pure: true, state: true},

	"coordinator": {sees: "metadata wire wire/batch", outside: "github.com/twmb/franz-go/pkg/kmsg", pure: true, state: true},

	"systemd": {outside: "github.com/coreos/go-systemd/v22"},

	"daemon/config": {},
	"daemon/server": {sees: "ring wire", outside: "github.com/twmb/franz-go/pkg/kmsg", pure: true},
	"daemon/api": {sees: "daemon/config daemon/server coordinator replication replication/controller segment metadata ring wire wire/batch",
		outside: "github.com/twmb/franz-go/pkg/kmsg", pure: true},
	"daemon/broker": {sees: "daemon/config daemon/server daemon/api coordinator replication replication/controller segment metadata ring wire wire/batch",
		pure: true},
	"daemon": {sees: "daemon/broker daemon/api daemon/server daemon/config coordinator systemd ring metadata metadata/embedded segment wire wire/batch bench",
		outside: "github.com/spf13/cobra github.com/twmb/franz-go github.com/twmb/franz-go/pkg/kadm github.com/twmb/franz-go/pkg/kmsg " +
			"github.com/VictoriaMetrics/metrics github.com/jedib0t/go-pretty/v6 github.com/schollz/progressbar/v3 golang.org/x/term " +
			"github.com/go-zookeeper/zk"},

	"sim": {sees: "daemon/broker daemon/config ring ring/simring metadata metadata/embedded wire wire/batch",
		outside: "github.com/twmb/franz-go/pkg/kmsg"},

	"bench": {sees: "wire wire/batch", outside: "github.com/HdrHistogram/hdrhistogram-go github.com/twmb/franz-go/pkg/kmsg " +
		"github.com/klauspost/compress github.com/pierrec/lz4/v4"},
	"bench/compare":  {sees: "bench"},
	"bench/recovery": {sees: "bench"},

	"conformance/stage":   {},                          // what the tests below share: binary, ports, real Kafka
	"conformance":         {sees: "conformance/stage"}, // tests only: the finished binary, from outside
	"conformance/systemd": {},                          // tests only: the installed service on a machine of its own
	"conformance/trees":   {},                          // tests only: its metadata beside Kafka's
	"conformance/twins":   {},                          // tests only: its files beside Kafka's
	"conformance/golden":  {},                          // tests only: started on log dirs that Kafka left

	"conformance/swap":   {}, // tests only: one data directory under Kafka and kring in turn
	"conformance/suites": {}, // tests only: what client libraries test brokers with
}

func TestHouse(t *testing.T) {
	for _, p := range inspect(".", house) {
		t.Error(p)
	}
}

func TestDocumentsKeepTheirWord(t *testing.T) {
	read := func(name string) string {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, p := range inspectDocuments(house, read("README.md"), read("ARCHITECTURE.md"), read("Makefile")) {
		t.Error(p)
	}
	if ci := read(".ci/run"); !strings.Contains(ci, "make test") {
		t.Error(".ci/run does not call the README's command for all tests, make test")
	}
}

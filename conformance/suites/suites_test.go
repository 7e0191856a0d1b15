package suites

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// suite is a client library's own tests.
type suite struct {
	name   string   // its folder here, and its list in testdata
	pkg    string   // the package whose tests these are
	flags  []string // of go test -c
	cgo    bool
	addr   string   // the only address it looks at; empty where it can be told one
	config []string // the broker's settings
	args   []string // of the test program
	env    func(addr string) []string
	// proxied puts the advertised address before another one, where the broker listens.
	proxied bool
	// only restricts the tests to files that contain it.
	only string
	// each gives every test a process of its own, since one that panics takes the others with it.
	each bool
	// around makes what stands beside the program. It gives the folder to run in, and the one to build in if that is a copy of the source.
	around func(t *testing.T, s *suite, b *broker) (run, source string)
	quick  bool
}

// alike are the settings that every suite wants of a single broker; the last has it look for expired groups all the time.
var alike = []string{"broker.id=1", "auto.create.topics.enable=true", "group.initial.rebalance.delay.ms=0", "offsets.topic.replication.factor=1",
	"transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1", "offsets.retention.check.interval.ms=1000"}

var suites = []suite{
	{
		name: "franz-go", pkg: "github.com/twmb/franz-go/pkg/kgo", quick: true,
		config: []string{"num.partitions=4"},
		env: func(addr string) []string {
			return []string{"KGO_SEEDS=" + addr, "KGO_TEST_RF=1", "KGO_TEST_RECORDS=50000", "KGO_LOG_LEVEL=none"}
		},
	},
	{
		name: "kafka-go", pkg: "github.com/segmentio/kafka-go", each: true, addr: "localhost:9092", quick: true,
		config: []string{"num.partitions=4", "broker.rack=", "message.max.bytes=200000000", "replica.fetch.max.bytes=200000000"},
		env:    func(string) []string { return []string{"KAFKA_VERSION=3.9.0", "KAFKA_SKIP_NETTEST=1"} },
	},
	{
		name: "sarama", pkg: "github.com/IBM/sarama", flags: []string{"-tags=functional"}, only: "//go:build functional", proxied: true,
		config: []string{"num.partitions=1", "auto.create.topics.enable=false", "broker.rack=1"},
		around: besideToxiproxy,
	},
	{
		name: "watermill-kafka", pkg: "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka",
		config: []string{"num.partitions=1"},
		env:    func(addr string) []string { return []string{"WATERMILL_TEST_KAFKA_BROKERS=" + addr} },
	},
	{
		name: "confluent-kafka-go", pkg: "github.com/confluentinc/confluent-kafka-go/v2/kafka", cgo: true,
		config: []string{"num.partitions=4"},
		around: besideTestconf,
	},
}

func TestSuites(t *testing.T) {
	want := strings.Split(or(os.Getenv("SUITES"), "quick"), ",")
	for i := range suites {
		s := &suites[i]
		if !slices.Contains(want, "all") && !slices.Contains(want, s.name) && !(s.quick && slices.Contains(want, "quick")) {
			continue
		}
		for _, loops := range strings.Split(or(os.Getenv("LOOPS"), "2"), ",") {
			t.Run(fmt.Sprintf("%s/loops=%s", s.name, loops), func(t *testing.T) { s.run(t, loops) })
		}
	}
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// run holds the suite's results against its list.
func (s *suite) run(t *testing.T, loops string) {
	list := s.list(t)
	b := s.start(t, loops)
	dir, source := s.folder(t), ""
	var env []string
	if s.env != nil {
		env = s.env(b.addr)
	}
	if s.around != nil {
		dir, source = s.around(t, s, b)
	}
	p := &program{t: t, dir: dir, path: s.build(t, source), args: s.args, env: append(env, b.env...)}
	var rounds [][]string
	for _, name := range list.run(os.Getenv("RUN")) {
		if s.each || len(rounds) == 0 {
			rounds = append(rounds, nil)
		}
		last := len(rounds) - 1
		rounds[last] = append(rounds[last], name)
	}
	got := results{}
	for _, names := range rounds {
		got.add(p.run(names, list.out()))
	}
	for _, again := range list.wrong(got) {
		if list.verdict[again] == "again" {
			t.Logf("%s: a second try after\n%s", again, got.said(again))
			top, _, _ := strings.Cut(again, "/")
			got.add(p.run([]string{top}, list.out()))
		}
	}
	list.compare(t, got, os.Getenv("RUN"))
}

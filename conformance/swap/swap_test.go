package swap

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// rounds is how often Kafka and kring take turns.
func rounds(t *testing.T) int {
	text := os.Getenv("KRING_SWAP_ROUNDS")
	if text == "" {
		return 4
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("KRING_SWAP_ROUNDS is %q; allowed: a whole number above 0", text)
	}
	return n
}

func signalOf(kill bool) (syscall.Signal, string) {
	if kill {
		return syscall.SIGKILL, "killed"
	}
	return syscall.SIGTERM, "stopped"
}

// story is what goes on over the rounds.
type story struct {
	*house
	t       *testing.T
	ctx     context.Context
	streams []*stream
	readers *readers
	ids     map[int64]string  // producer ids, and who gave them out
	topics  map[string]string // ids of topics
	txns    transactions
	written written
	epoch   int
	loads   int
}

// TestSwap: a data directory goes from Kafka to kring and back under load, and nothing that was acknowledged is lost or changed.
func TestSwap(t *testing.T) {
	if os.Getenv("KRING_PEERS_TEST") == "" {
		t.Skip("needs a real Kafka; make conformance sets KRING_PEERS_TEST")
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := &story{house: newHouse(t), t: t, ctx: ctx, ids: map[int64]string{}, topics: map[string]string{}, written: written{}}
	s.startKafka()
	s.begin()
	for round := range rounds(t) {
		began := time.Now()
		s.kafkasTurn(round, round%2 == 1)
		s.kringsTurn(round, round/2%2 == 1)
		t.Logf("round %d took %v, %d records", round, time.Since(began).Round(time.Millisecond), s.total())
		if t.Failed() {
			break
		}
	}
	s.finish(cancel)
}

// begin makes the topics and starts the load on the first Kafka.
func (s *story) begin() {
	s.create(steady, int32(len(codecs)+1), "segment.bytes=300000", "retention.ms=-1", "index.interval.bytes=2048")
	s.create(compact, 2, "cleanup.policy=compact", "segment.bytes=60000", "min.cleanable.dirty.ratio=0.01")
	s.create(ledger, 1)
	s.create(javaLedger, javaParts, "segment.bytes=20000", "retention.ms=-1")
	for i := range len(codecs) + 1 {
		s.streams = append(s.streams, startStream(s.t, s.ctx, s.addr, steady, int32(i), codecs[i%len(codecs)]))
	}
	s.streams = append(s.streams, startStream(s.t, s.ctx, s.addr, compact, 0, kgo.NoCompression()),
		startStream(s.t, s.ctx, s.addr, compact, 1, kgo.Lz4Compression()))
	s.readers = startReaders(s.t, s.ctx, s.addr, s.streams)
	s.txns.id = "mover"
}

// kafkasTurn: Kafka serves, as it does when a round begins, and ends; its tree goes to kring.
func (s *story) kafkasTurn(round int, kill bool) {
	name := fmt.Sprintf("Kafka of round %d", round)
	s.newProducer(name)
	s.txns.work(s.t, s.addr, round)
	s.written.write(s.t, s.addr, round, 20, 15*time.Second, fmt.Sprint(javaLedger, ":", javaParts))
	s.create(fmt.Sprint("kafkas-", round), 2, "retention.ms="+strconv.Itoa(1000000+round))
	if round > 0 {
		s.remove(fmt.Sprint("krings-", round-1))
	}
	s.load()
	sig, how := signalOf(kill)
	s.endKafka(sig)
	s.keep(fmt.Sprintf("%d-kafka-%s", round, how))
	got := storeDone(s.t, "import", s.properties)
	if got.ControllerEpoch <= s.epoch || got.Replaced != (round > 0) || got.Kept != "" {
		s.t.Errorf("import behind controller epoch %d: %+v", s.epoch, got)
	}
	s.epoch = got.ControllerEpoch
	s.t.Logf("%s was %s: %d topics of cluster %s", name, how, got.Topics, got.ClusterID)
}

// kringsTurn: kring serves on what Kafka left and ends, and Kafka starts on what it left.
func (s *story) kringsTurn(round int, kill bool) {
	name := fmt.Sprintf("kring of round %d", round)
	before, coordinated := promises(s.streams, s.readers), s.transactionLogs(s.t)
	s.startKring([]int{1, 2, 4}[round%3])
	s.hold(s.t, before, s.streams, name)
	s.sameTopics(name)
	s.txns.check(s.t, s.house, false, name)
	s.written.check(s.t, s.house, name)
	s.newProducer(name)
	s.create(fmt.Sprint("krings-", round), 3, "retention.ms="+strconv.Itoa(2000000+round))
	s.remove(fmt.Sprint("kafkas-", round))
	s.alter(steady, "retention.bytes", strconv.Itoa(1<<40+round))
	s.load()
	sig, how := signalOf(kill)
	s.endKring(sig)
	if now := s.transactionLogs(s.t); now != coordinated {
		s.t.Errorf("%s changed the transaction coordinator's logs:\n%swas\n%s", name, now, coordinated)
	}
	s.keep(fmt.Sprintf("%d-kring-%s", round, how))
	s.kafkasDump(s.t, kill, name+", "+how)
	got := storeDone(s.t, "export", s.properties)
	if got.ControllerEpoch <= s.epoch || len(got.Created) == 0 || len(got.Changed) == 0 || len(got.Deleted) == 0 || got.LeftAlone != nil {
		s.t.Errorf("export behind controller epoch %d: %+v", s.epoch, got)
	}
	s.epoch = got.ControllerEpoch
	s.t.Logf("%s was %s", name, how)
	s.refusedToServe(s.t)
	if s.t.Failed() {
		s.t.Logf("%s said:\n%s", name, s.said)
	}
	after := promises(s.streams, s.readers)
	s.startKafka()
	s.hold(s.t, after, s.streams, "Kafka behind "+name)
	s.sameTopics("Kafka behind " + name)
	if got := s.setting(steady, "retention.bytes"); got != strconv.Itoa(1<<40+round) {
		s.t.Errorf("behind %s retention.bytes of %s is %s", name, steady, got)
	}
	s.txns.check(s.t, s.house, true, "Kafka behind "+name)
	s.awaitTimeout(s.t, "Kafka behind "+name)
	s.written.check(s.t, s.house, "Kafka behind "+name)
	s.kafkaSaid(s.t)
	if wrong := complaints(s.streams, s.readers); wrong != "" {
		s.t.Errorf("behind %s:\n%s", name, wrong)
	}
}

// finish ends the load and looks at everything once more.
func (s *story) finish(stop func()) {
	stop()
	<-s.readers.stopped
	for _, st := range s.streams {
		<-st.stopped
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		if err := st.client.Flush(ctx); err != nil {
			s.t.Errorf("%s-%d: %v", st.topic, st.partition, err)
		}
		id, epoch, err := st.client.ProducerID(ctx)
		cancel()
		if by := s.ids[id]; err != nil || by != "" || epoch != 0 {
			s.t.Errorf("the producer of %s-%d ends with id %d epoch %d (%v), given out by %s: not the one it began with", st.topic, st.partition,
				id, epoch, err, by)
		}
	}
	s.hold(s.t, promises(s.streams, s.readers), s.streams, "at the end")
	for _, st := range s.streams {
		if n := len(st.sums); st.done != n {
			s.t.Errorf("%s-%d: %d of %d records are acknowledged", st.topic, st.partition, st.done, n)
		}
	}
	if wrong := complaints(s.streams, s.readers); wrong != "" {
		s.t.Errorf("at the end:\n%s", wrong)
	}
	s.endKafka(syscall.SIGTERM)
}

func (s *story) total() (n int) {
	for _, st := range s.streams {
		n += st.acknowledged()
	}
	return n
}

// load waits until every stream and the group have gone on for a while.
func (s *story) load() {
	s.t.Helper()
	defer s.timed("the load")()
	var goals []int
	for _, st := range s.streams {
		goals = append(goals, st.acknowledged()+100)
	}
	for i, st := range s.streams {
		st.reach(s.t, goals[i])
	}
	s.readers.more(s.t, 3)
}

// newProducer asks the broker for producer ids as new producers do: none may come twice.
func (s *story) newProducer(who string) {
	s.t.Helper()
	cl, _ := s.admin(s.t)
	defer cl.Close()
	for range 2 {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.ProducerID, req.ProducerEpoch = -1, -1
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		resp, err := req.RequestWith(ctx, cl)
		cancel()
		if err != nil || resp.ErrorCode != 0 {
			s.t.Fatalf("%s gives no producer id: %v %+v", who, err, resp)
		}
		if by := s.ids[resp.ProducerID]; by != "" {
			s.t.Errorf("%s gives out the producer id %d, as %s did", who, resp.ProducerID, by)
		}
		s.ids[resp.ProducerID] = who
	}
}

func (s *story) create(topic string, partitions int32, configs ...string) {
	s.t.Helper()
	cl, adm := s.admin(s.t)
	defer cl.Close()
	all := map[string]*string{}
	for _, c := range configs {
		for i := range c {
			if c[i] == '=' {
				value := c[i+1:]
				all[c[:i]] = &value
			}
		}
	}
	r, err := adm.CreateTopic(context.Background(), partitions, 1, all, topic)
	if err == nil {
		err = r.Err
	}
	if err != nil {
		s.t.Fatalf("creating %s: %v", topic, err)
	}
	s.topics[topic] = r.ID.String()
}

func (s *story) remove(topic string) {
	s.t.Helper()
	cl, adm := s.admin(s.t)
	defer cl.Close()
	if r, err := adm.DeleteTopic(context.Background(), topic); err != nil || r.Err != nil {
		s.t.Fatalf("deleting %s: %v %v", topic, err, r.Err)
	}
	delete(s.topics, topic)
	// Kafka answers before it has deleted all; a kill in between is another story.
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if list, err := adm.ListTopics(context.Background(), topic); err == nil && !list.Has(topic) {
			return
		}
	}
	s.t.Fatalf("%s is not deleted", topic)
}

func (s *story) alter(topic, key, value string) {
	s.t.Helper()
	cl, adm := s.admin(s.t)
	defer cl.Close()
	if _, err := adm.AlterTopicConfigs(context.Background(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: key, Value: &value}}, topic); err != nil {
		s.t.Fatal(err)
	}
}

func (s *story) setting(topic, key string) string {
	s.t.Helper()
	cl, adm := s.admin(s.t)
	defer cl.Close()
	all, err := adm.DescribeTopicConfigs(context.Background(), topic)
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := all.On(topic, nil)
	if err != nil || c.Err != nil {
		s.t.Fatal(err, c.Err)
	}
	for _, k := range c.Configs {
		if k.Key == key {
			return k.MaybeValue()
		}
	}
	return ""
}

// sameTopics holds the broker's topics and their ids against those made so far.
func (s *story) sameTopics(when string) {
	s.t.Helper()
	cl, adm := s.admin(s.t)
	defer cl.Close()
	list, err := adm.ListTopics(context.Background())
	if err != nil {
		s.t.Fatal(err)
	}
	for topic, id := range s.topics {
		if got := list[topic]; got.ID.String() != id {
			s.t.Errorf("%s: topic %s has id %v (%v), not %s", when, topic, got.ID, got.Err, id)
		}
	}
	if len(list) != len(s.topics) {
		s.t.Errorf("%s: topics %v, not %v", when, list.Names(), s.topics)
	}
}

package main

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/wire/batch"
)

// damage changes a byte of the records of the nth batch of a partition's first segment.
func damage(t *testing.T, dir string, n int) {
	t.Helper()
	logs, err := filepath.Glob(dir + "/*.log")
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	text, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	size := func() int { return 12 + int(binary.BigEndian.Uint32(text[at+8:])) }
	for range n {
		at += size()
	}
	text[at+size()-2] ^= 1
	if err := os.WriteFile(logs[0], text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestConsumerPrintsWhatLiesBeforeADamagedBatch: and says where it stopped, what looks into it, and where reading goes on.
func TestConsumerPrintsWhatLiesBeforeADamagedBatch(t *testing.T) {
	b := start(t, t.TempDir()+"/data", noDelay)
	b.kring("", "topics", "create", "w").ok(t)
	for _, words := range []string{"a\n", "b\n", "c\n", "x\ny\n", "z\n"} {
		b.kring(words, "produce", "w").ok(t)
	}
	b.end(syscall.SIGTERM)
	damage(t, b.data+"/w-0", 3)
	b.run()
	const says = "kring: w-0: the batch at offset 3 is damaged; kring log verify on the broker's log dir shows it, kring log repair takes it out, "
	for args, way := range map[string]string{
		"--from-beginning -e":                   "-o 5 reads on\n",
		"--from-beginning -e --json --keys x":   "-o 5 reads on\n",
		"--group readers --from-beginning -e":   "kring groups reset-offsets readers --topic w:0 --to-offset 5 --execute passes it\n",
		"-o 4 -e --fetch-max-bytes 1":           "-o 5 reads on\n",
		"--group others --from-beginning -n 10": "kring groups reset-offsets others --topic w:0 --to-offset 5 --execute passes it\n",
	} {
		r := b.kring("", append([]string{"consume", "w"}, strings.Fields(args)...)...)
		printed := strings.Count(r.out, "\n")
		if want := map[bool]int{true: 0, false: 3}[strings.HasPrefix(args, "-o 4")]; printed != want || r.status != exitFailed || r.errOut != says+way {
			t.Errorf("%s: %+v", args, r)
		}
	}
	if out := b.kring("", "consume", "w", "-o", "5", "-e").ok(t); out != "z\n" {
		t.Errorf("%q", out)
	}
}

// TestConsumerSaysThatATransactionIsOpen: who reads what is committed does not take where it stops for the end.
func TestConsumerSaysThatATransactionIsOpen(t *testing.T) {
	b := start(t, t.TempDir()+"/data", noDelay, "transaction.partition.verification.enable=false")
	b.kring("", "topics", "create", "newt").ok(t)
	b.kring("before\n", "produce", "newt").ok(t)
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.addr))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	w := batch.NewBuilder(batch.None)
	w.ProducerID, w.ProducerEpoch, w.BaseSequence, w.Transactional = 4001, 0, 0, true
	w.Add(1_700_000_000_000, nil, []byte("v"))
	id := "t9"
	m := kmsg.NewPtrProduceRequest()
	m.TransactionID, m.Acks, m.TimeoutMillis = &id, -1, 10_000
	topic, part := kmsg.NewProduceRequestTopic(), kmsg.NewProduceRequestTopicPartition()
	part.Records = w.AppendTo(nil)
	topic.Topic, topic.Partitions = "newt", append(topic.Partitions, part)
	m.Topics = append(m.Topics, topic)
	answer, err := cl.Request(t.Context(), m)
	if err != nil || answer.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode != 0 {
		t.Fatal(answer, err)
	}
	b.kring("behind\n", "produce", "newt").ok(t)
	const says = "newt-0: stopped at 1 of 3: a transaction is open\n"
	for args, want := range map[string][2]string{
		"--from-beginning -e --read-committed":             {"before\n", says},
		"-e --read-committed":                              {"", says},
		"--from-beginning -e":                              {"before\nv\nbehind\n", ""},
		"--from-beginning -n 1 --read-committed":           {"before\n", ""},
		"--group readers -e --read-committed -o beginning": {"before\n", says},
	} {
		r := b.kring("", append([]string{"consume", "newt"}, strings.Fields(args)...)...)
		if r.status != 0 || r.out != want[0] || r.errOut != want[1] {
			t.Errorf("%s: %+v", args, r)
		}
	}
}

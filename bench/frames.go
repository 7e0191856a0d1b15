package bench

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/wire"
	"kring/wire/batch"
)

// The versions bench speaks: Kafka 3.9 and every broker since 2.4 serve them.
const (
	produceVersion = 9
	fetchVersion   = 11
	createVersion  = 5
	listVersion    = 4
)

// values makes n record values of size bytes; the first 8 of each are left for the send time. Text-like bytes compress
// about as log lines do, so that codecs are neither idle nor helpless.
func values(n, size int) [][]byte {
	words := []string{"error ", "request ", "partition ", "offset ", "leader ", "timeout ", "0x7f3a ", "10.0.0.1 ",
		"user=alice ", "status=200 "}
	r := rand.New(rand.NewPCG(1, 2))
	out := make([][]byte, n)
	for i := range out {
		v := make([]byte, 8, size+16)
		for len(v) < size {
			v = append(v, words[r.IntN(len(words))]...)
			v = binary.AppendUvarint(v, r.Uint64N(1<<20))
		}
		out[i] = v[:size]
	}
	return out
}

// batch encodes one record batch; stamp goes into the first 8 bytes of each value.
func (o *Options) batch(vals [][]byte, stamp time.Duration) []byte {
	codec, _ := batch.CodecByName(o.Codec)
	b := batch.NewBuilder(codec)
	now := time.Now().UnixMilli()
	for _, v := range vals {
		binary.BigEndian.PutUint64(v, uint64(stamp))
		b.Add(now, nil, v)
	}
	return b.AppendTo(nil)
}

func (o *Options) produceFrame(partition int, records []byte) []byte {
	req := kmsg.NewPtrProduceRequest()
	req.Version = produceVersion
	req.Acks = int16(o.Acks)
	req.TimeoutMillis = 30000
	t := kmsg.NewProduceRequestTopic()
	t.Topic = o.Topic
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition = int32(partition)
	p.Records = records
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return encode(req, 1)
}

// codeError is a broker's refusal.
type codeError struct {
	what string
	code int16
}

func (e *codeError) Error() string { return e.what + ": " + wire.Code(e.code).Error() }

// notYet tells a topic that was just made and is not led yet: unknown, no leader, not the leader.
func notYet(err error) bool {
	e, ok := err.(*codeError)
	return ok && (e.code == 3 || e.code == 5 || e.code == 6)
}

// produceCode checks the answer to a produce request.
func produceCode(answer []byte) error {
	resp := kmsg.NewPtrProduceResponse()
	resp.Version = produceVersion
	b, err := body(answer, resp)
	if err != nil {
		return err
	}
	if err := resp.ReadFrom(b); err != nil {
		return err
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 {
				return &codeError{fmt.Sprintf("produce to %s-%d", t.Topic, p.Partition), p.ErrorCode}
			}
		}
	}
	return nil
}

package conformance

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// producer sends batches with an id.
type producer struct {
	id    int64
	epoch int16
	ms    int64 // the time of its records
}

// batch is that of one record: the same bytes whenever it is asked for.
func (p *producer) batch(sequence int32) []byte {
	b := recordBatch([]byte("k"), fmt.Appendf(nil, "%08d", sequence))
	binary.BigEndian.PutUint64(b[27:], uint64(p.ms))
	binary.BigEndian.PutUint64(b[35:], uint64(p.ms))
	binary.BigEndian.PutUint64(b[43:], uint64(p.id))
	binary.BigEndian.PutUint16(b[51:], uint16(p.epoch))
	binary.BigEndian.PutUint32(b[53:], uint32(sequence))
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// send produces a batch and gives its offset.
func (r raw) send(topic string, batch []byte) (offset int64, code int16) {
	r.t.Helper()
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = 8, -1, 3000
	req.Topics = []kmsg.ProduceRequestTopic{{Topic: topic, Partitions: []kmsg.ProduceRequestTopicPartition{{Records: batch}}}}
	got := must[*kmsg.ProduceResponse](r.t, r.c, req).Topics[0].Partitions[0]
	return got.BaseOffset, got.ErrorCode
}

// TestResentBatchesAreKnown sends the last five batches of a producer again, byte by byte, on the same connection, after a stop, after kills,
// and after all records were deleted: each is answered with the offset it has and is there once. A gap is refused, and what is next is taken.
func TestResentBatchesAreKnown(t *testing.T) {
	for _, n := range loops {
		t.Run(fmt.Sprintf("loops=%d", n), func(t *testing.T) {
			b := start(t, n)
			b.create("t", 1)
			who := must[*kmsg.InitProducerIDResponse](t, b.dial(), kmsg.NewPtrInitProducerIDRequest())
			p := &producer{who.ProducerID, who.ProducerEpoch, time.Now().UnixMilli()}
			next := int32(0)
			again := func(when string) {
				t.Helper()
				r := raw{t, b.dial()}
				for s := max(next-5, 0); s < next; s++ {
					if o, code := r.send("t", p.batch(s)); code != 0 || o != int64(s) {
						t.Fatalf("%s: %d, sent again: offset %d, code %d", when, s, o, code)
					}
				}
				if next > 0 { // of a producer that is not known any number is taken
					if _, code := r.send("t", p.batch(next+1)); code != kerr.OutOfOrderSequenceNumber.Code {
						t.Fatalf("%s: a gap: code %d", when, code)
					}
				}
				for range 6 {
					if o, code := r.send("t", p.batch(next)); code != 0 || o != int64(next) {
						t.Fatalf("%s: %d: offset %d, code %d", when, next, o, code)
					}
					next++
				}
			}
			again("at first")
			again("on")
			for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGKILL} {
				b.stop(sig)
				b.run()
				again(sig.String())
			}
			if got := b.values("t")[0]; len(got) != int(next) {
				t.Fatalf("%d records of %d", len(got), next)
			}
			for _, sig := range []syscall.Signal{0, syscall.SIGTERM, syscall.SIGKILL} {
				if sig != 0 {
					b.stop(sig)
					b.run()
				}
				m := kmsg.NewPtrDeleteRecordsRequest()
				m.TimeoutMillis = 5000
				m.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: "t", Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Offset: -1}}}}
				if p := must[*kmsg.DeleteRecordsResponse](t, b.dial(), m).Topics[0].Partitions[0]; p.ErrorCode != 0 || p.LowWatermark != int64(next) {
					t.Fatalf("deleted up to %d of %d, code %d", p.LowWatermark, next, p.ErrorCode)
				}
				again(fmt.Sprintf("after a deletion, %v", sig))
			}
		})
	}
}

// TestFileSizeLimitTearsNothing lets the kernel cut writes short and then refuse them, by a limit on the size of files set while the
// broker writes, and takes it away: what was acknowledged is there, whole, and nothing else is.
func TestFileSizeLimitTearsNothing(t *testing.T) {
	for _, path := range []string{"ring", "pwrite"} {
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			t.Run(fmt.Sprint(path, "/", sig), func(t *testing.T) {
				b := start(t, 2, "kring.write.path="+path)
				b.create("t", 1)
				w := newWriter(b, "t")
				for i := range 60 {
					if err := w.write(500 + 97*i); err != nil {
						t.Fatal(err)
					}
				}
				size := fileSize(t, logsOf(t, b, "t")[0])
				limit := func(bytes string) {
					if out, err := exec.Command("prlimit", "--pid", strconv.Itoa(b.cmd.Process.Pid), "--fsize="+bytes+":").CombinedOutput(); err != nil {
						t.Fatalf("%v %s", err, out)
					}
				}
				limit(strconv.FormatInt(size+10_001, 10))
				refused := 0
				for range 20 { // the first fits, one is cut, the rest find no room, or a log that is offline
					if err := w.write(4000); err != nil {
						refused++
					}
				}
				if refused == 0 {
					t.Fatal("the limit refuses nothing")
				}
				select {
				case err := <-b.done: // it may stop, if it says why
					b.done <- err
				default:
					limit("unlimited")
					b.stop(sig)
				}
				b.run()
				w.check("with room again")
				w.cl = newWriter(b, "t").cl // its connection ended with the broker
				if err := w.write(1000); err != nil {
					t.Fatal(err)
				}
				w.check("at the end")
				ends, err := kadm.NewClient(b.client()).ListEndOffsets(t.Context(), "t")
				end, _ := ends.Lookup("t", 0)
				if err != nil {
					t.Fatal(err)
				}
				b.stop(syscall.SIGTERM)
				whole(t, logsOf(t, b, "t")[0], end.Offset)
				b.run()
			})
		}
	}
}

func fileSize(t *testing.T, name string) int64 {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

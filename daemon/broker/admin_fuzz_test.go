package broker

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/wire"
)

// FuzzAdminRequests sends any bytes as the body of an administrative request: they are answered or the connection is closed, and the
// broker serves others as before, and stops in order.
func FuzzAdminRequests(f *testing.F) {
	text, err := os.ReadFile(adminGolden)
	if err != nil {
		f.Fatal(err)
	}
	var all []goldenAnswer
	if err := json.Unmarshal(text, &all); err != nil {
		f.Fatal(err)
	}
	keys := map[string]int16{}
	for key := range wire.KeyMax + 1 {
		if _, _, ok := wire.Supported(key); ok {
			keys[wire.Name(key)] = key
		}
	}
	for _, g := range all {
		if body, err := hex.DecodeString(g.Request); err == nil && len(body) < 500 {
			f.Add(uint8(keys[g.API]), uint8(g.Version), body)
		}
	}
	f.Fuzz(func(t *testing.T, key, version uint8, body []byte) {
		lowest, highest, ok := wire.Supported(int16(key))
		if !ok || len(body) > 1<<16 {
			return
		}
		s := newSim(t, 2, 1)
		s.start("broker.id=1", "log.segment.delete.delay.ms=0")
		good := connect(t, s)
		good.createTopic("adm", 2)
		head := wire.RequestHeader{Key: int16(key), Version: lowest + int16(version)%(highest-lowest+1), CorrelationID: 9, ClientID: []byte("fuzz")}
		frame := append(wire.AppendRequestHeader(make([]byte, 4), &head), body...)
		wire.PutFrameSize(frame, 0)
		bad := s.w.Dial(simAddr)
		bad.Send(frame)
		s.w.RunFor(5 * time.Second)
		for _, l := range s.all {
			if n := l.InUse(); n > 16<<20 {
				t.Fatalf("%d bytes lent out", n)
			}
		}
		if got := ask[*kmsg.MetadataResponse](good, kmsg.NewPtrMetadataRequest(), 12); len(got.Brokers) != 1 {
			t.Fatalf("%+v", got)
		}
		bad.Close()
		s.stop()
	})
}

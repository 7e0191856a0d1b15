package conformance

import (
	"encoding/binary"
	"encoding/hex"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestMalformedBodiesEndTheConnection: an array that is null where there must be one, or says that it has more than the body holds, is not
// taken for an empty one: the connection ends without an answer, as with Kafka (CONFORMANCE_KAFKA=1 asks that), and the next one is served.
func TestMalformedBodiesEndTheConnection(t *testing.T) {
	b := start(t, 2)
	for _, c := range []struct {
		name         string
		key          kmsg.Key
		version      int16
		body         string
		wellAnswered bool
	}{
		{"WriteTxnMarkers of nothing", kmsg.WriteTxnMarkers, 1, "01 00", true},
		{"WriteTxnMarkers with null markers", kmsg.WriteTxnMarkers, 1, "00 00", false},
		{"WriteTxnMarkers 0 with null markers", kmsg.WriteTxnMarkers, 0, "ffffffff", false},
		{"WriteTxnMarkers with 2^32-2 markers", kmsg.WriteTxnMarkers, 1, "ffffffff0f 00", false},
		{"WriteTxnMarkers 0 with 2^31-1 markers", kmsg.WriteTxnMarkers, 0, "7fffffff", false},
		{"WriteTxnMarkers 0 with -2 markers", kmsg.WriteTxnMarkers, 0, "fffffffe", false},
		{"WriteTxnMarkers with null topics", kmsg.WriteTxnMarkers, 1, "02 0000000000000001 0000 01 00 00000000 00 00", false},
		{"WriteTxnMarkers with null partitions", kmsg.WriteTxnMarkers, 1, "02 0000000000000001 0000 01 02 0274 00 00 00000000 00 00", false},
		{"WriteTxnMarkers cut short", kmsg.WriteTxnMarkers, 1, "02 0000", false},
		{"DescribeGroups with null groups", kmsg.DescribeGroups, 5, "00 00 00", false},
		{"DeleteGroups with null groups", kmsg.DeleteGroups, 2, "00 00", false},
		{"OffsetDelete with null topics", kmsg.OffsetDelete, 0, "0001 67 ffffffff", false},
		{"ListOffsets with null topics", kmsg.ListOffsets, 7, "ffffffff 00 00 00", false},
		{"DeleteRecords with null topics", kmsg.DeleteRecords, 2, "00 00000000 00", false},
		{"FindCoordinator with null keys", kmsg.FindCoordinator, 4, "00 00 00", false},
		{"CreateTopics with null topics", kmsg.CreateTopics, 7, "00 00000000 00 00", false},
		{"Metadata with null topics, which are all", kmsg.Metadata, 12, "00 00 00 00", true},
		{"DescribeUserSCRAMCredentials with null users, which are all", kmsg.DescribeUserSCRAMCredentials, 0, "00 00", true},
	} {
		frame := malformed(t, c.key, c.version, c.body)
		conn := b.dial()
		if _, err := conn.Write(frame); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		switch _, err := answer(conn); {
		case timedOut(err):
			t.Errorf("%s: neither an answer nor the end", c.name)
		case (err == nil) != c.wellAnswered:
			t.Errorf("%s: answered: %v (%v)", c.name, err == nil, err)
		}
		conn.Close()
	}
	if _, err := roundTrip(b.dial(), encode(kmsg.NewPtrApiVersionsRequest())); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func timedOut(err error) bool {
	e, ok := err.(net.Error)
	return ok && e.Timeout()
}

// malformed is a frame with a good header and such a body.
func malformed(t *testing.T, key kmsg.Key, version int16, body string) []byte {
	t.Helper()
	var raw []byte
	for _, c := range body {
		if c != ' ' {
			raw = append(raw, byte(c))
		}
	}
	raw, err := hex.DecodeString(string(raw))
	if err != nil {
		t.Fatal(err)
	}
	req := kmsg.RequestForKey(int16(key))
	req.SetVersion(version)
	frame := binary.BigEndian.AppendUint16(make([]byte, 4), uint16(key))
	frame = binary.BigEndian.AppendUint16(frame, uint16(version))
	frame = append(frame, 0, 0, 0, 7, 0xff, 0xff)
	if req.IsFlexible() {
		frame = append(frame, 0)
	}
	frame = append(frame, raw...)
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	return frame
}

package wire

import (
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// DecodeRequest reads the body of any request but Produce and Fetch, which have views. The body is checked against the
// layout of its version first, so that what kmsg allocates is bounded and what Kafka would refuse (null where it may not be,
// a count that cannot be) is refused.
//
// The request holds no reference to body.
func DecodeRequest(key, version int16, body []byte) (kmsg.Request, error) {
	lowest, highest, ok := Supported(key)
	switch {
	case !ok || key == Produce || key == Fetch:
		return nil, ErrKey
	case version < lowest || version > highest:
		return nil, ErrVersion
	}
	if err := checkShape(key, version, body); err != nil {
		return nil, err
	}
	req := kmsg.RequestForKey(key)
	req.SetVersion(version)
	// kmsg copies strings, but lets byte fields and unknown tags point into what it reads.
	own := append([]byte(nil), body...)
	if misplacesKRaft(key, version) {
		own = kraftAfterEpoch(own)
	}
	if err := req.ReadFrom(own); err != nil {
		return nil, ErrBody
	}
	return req, nil
}

// AppendRequest appends the header and the body of a request, in req's version.
func AppendRequest(dst []byte, correlationID int32, clientID []byte, req kmsg.Request) []byte {
	key, version := req.Key(), req.GetVersion()
	dst = AppendRequestHeader(dst, &RequestHeader{Key: key, Version: version, CorrelationID: correlationID, ClientID: clientID})
	start := len(dst)
	dst = req.AppendTo(dst)
	if misplacesKRaft(key, version) {
		kraftBeforeEpoch(dst[start:])
	}
	return dst
}

// AppendResponse appends the header and the body of an answer, in resp's version.
func AppendResponse(dst []byte, correlationID int32, resp kmsg.Response) []byte {
	return resp.AppendTo(AppendResponseHeader(dst, resp.Key(), resp.GetVersion(), correlationID))
}

// misplacesKRaft names the one request that kmsg has wrong: in StopReplica 4 it puts isKRaftController after the controller
// epoch, Kafka before it.
func misplacesKRaft(key, version int16) bool { return key == StopReplica && version == 4 }

// kraftAfterEpoch turns Kafka's order of a body (id 4, kraft 1, epoch 4) into kmsg's; kraftBeforeEpoch turns it back.
func kraftAfterEpoch(b []byte) []byte {
	if len(b) >= 9 {
		kraft, epoch := b[4], binary.BigEndian.Uint32(b[5:])
		binary.BigEndian.PutUint32(b[4:], epoch)
		b[8] = kraft
	}
	return b
}

func kraftBeforeEpoch(b []byte) {
	epoch, kraft := binary.BigEndian.Uint32(b[4:]), b[8]
	b[4] = kraft
	binary.BigEndian.PutUint32(b[5:], epoch)
}

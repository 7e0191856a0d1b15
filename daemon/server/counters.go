package server

// Reason says why a connection was closed; each is counted.
type Reason uint8

// The reasons.
const (
	_          Reason = iota
	ByPeer            // in order, by the client
	Broken            // by the network
	Idle              // silent for longer than connections.max.idle.ms
	Slow              // its half-received frame stood in the way while memory was short
	BadSize           // a frame size below zero or above socket.request.max.bytes
	BadHeader         // no request header
	BadKey            // an API that is not served
	BadVersion        // a version that is not served
	BadBody           // a body that is no message of its API
	Refused           // over max.connections or max.connections.per.ip
	Stopping          // the broker stops
	Failed            // the handler could not answer
	reasons
)

var reasonNames = [reasons]string{"open", "by peer", "broken", "idle", "slow while memory is short",
	"frame size below 0 or above socket.request.max.bytes", "bad header", "unknown api",
	"unsupported version", "malformed body", "refused", "stopping", "failed"}

// String names the reason.
func (r Reason) String() string { return reasonNames[r] }

// bad says whether the client did something wrong.
func (r Reason) bad() bool { return r >= Slow && r <= Refused }

// Counters of one server since its start.
type Counters struct {
	Accepted, Requests, Answers uint64
	BytesIn                     uint64
	// Pauses counts how often a connection was not read from because the loop held too much.
	Pauses uint64
	// Closed counts by Reason.
	Closed [reasons]uint64
}

// reasonLabels name the reasons in numbers.
var reasonLabels = [reasons]string{"open", "by_peer", "broken", "idle", "slow", "frame_size", "bad_header", "unknown_api",
	"unsupported_version", "malformed_body", "refused", "stopping", "failed"}

// Reasons is the count of reasons, and Label the short name of one.
const Reasons = int(reasons)

// Label is the reason in one word.
func (r Reason) Label() string { return reasonLabels[r] }

package server

import (
	"math"
	"math/bits"
	"time"

	"kring/wire"
)

// API is what one server has counted of one API, all versions together.
type API struct {
	Key int16
	// Requests is how many were taken; Latency's Count is how many of them are answered, or done where no answer is due.
	Requests uint64
	// RequestBytes and ResponseBytes are those of whole frames, the size field included.
	RequestBytes, ResponseBytes uint64
	// Latency is from when a request is taken until its answer has left: what Kafka calls TotalTimeMs.
	Latency Latency
	// Errors counts error codes in answers, by code + 1, but for None; one answer may hold many (see Error).
	Errors [wire.CodeMax + 2]uint64

	plan *plan // where ReplyMessage finds error codes
}

// Error is how often a code was answered.
func (a *API) Error(c wire.Code) uint64 { return a.Errors[c+1] }

// Add makes a the sum of both.
func (a *API) Add(b *API) {
	a.Requests += b.Requests
	a.RequestBytes += b.RequestBytes
	a.ResponseBytes += b.ResponseBytes
	a.Latency.Count += b.Latency.Count
	a.Latency.Sum += b.Latency.Sum
	for i, n := range b.Latency.Buckets {
		a.Latency.Buckets[i] += n
	}
	for i, n := range b.Errors {
		a.Errors[i] += n
	}
}

// Latency is a histogram with buckets by powers of two: bucket i holds what took at most LatencyLeast << i, the last one the rest.
type Latency struct {
	Count   uint64
	Sum     time.Duration
	Buckets [LatencyBuckets]uint64
}

// The buckets reach from 32 us to 67 s. Time is that of the loop's turns: what is answered within one turn and has left when the
// next begins took the time between the two.
const (
	LatencyLeast   = 32 * time.Microsecond
	LatencyBuckets = 23
)

func (l *Latency) add(d time.Duration) {
	l.Count++
	l.Sum += d
	steps := uint64(max(d-1, 0) / LatencyLeast)
	l.Buckets[min(bits.Len64(steps), LatencyBuckets-1)]++
}

// Bound is the most that bucket i holds, in seconds.
func (l *Latency) Bound(i int) float64 {
	if i == LatencyBuckets-1 {
		return math.Inf(1)
	}
	return (LatencyLeast << i).Seconds()
}

// api is where a key is counted; keys that nobody asks for take no memory.
func (s *Server) api(key int16) *API {
	a := s.apis[key]
	if a == nil {
		a = &API{Key: key}
		s.apis[key] = a
	}
	return a
}

// APIs appends to dst a copy of what was counted of every API that was asked for, by key.
func (s *Server) APIs(dst []API) []API {
	for _, a := range s.apis {
		if a != nil {
			dst = append(dst, *a)
			dst[len(dst)-1].plan = nil
		}
	}
	return dst
}

// Failed counts an error code of the answer that is being made; None is not counted. ReplyMessage does this for every error code
// of its message: only who encodes an answer by hand calls it.
func (r *Request) Failed(c wire.Code) {
	if c == wire.None || r.api == nil {
		return
	}
	if c < wire.UnknownServerError || c > wire.CodeMax {
		c = wire.UnknownServerError
	}
	r.api.Errors[c+1]++
}

package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/server"
	"kring/replication/controller"
	"kring/wire"
)

// producerIDs is a loop's stock of producer ids, from blocks the controller gives out.
type producerIDs struct {
	next, end int64
	asked     bool
	waiting   []func(id int64, err error)
}

// initProducerID gives an idempotent producer its id. There is no transaction coordinator: a transactional id is refused
// with TRANSACTIONAL_ID_AUTHORIZATION_FAILED, which every client takes as final, while "coordinator not available" would be
// tried again for ever.
func initProducerID(c *Context, r *server.Request) {
	m := kmsg.NewPtrInitProducerIDRequest()
	if !decode(r, m) {
		return
	}
	resp := kmsg.NewPtrInitProducerIDResponse()
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	switch {
	case m.TransactionalID != nil && *m.TransactionalID == "" || (m.ProducerID < 0) != (m.ProducerEpoch < 0):
		resp.ErrorCode = int16(wire.InvalidRequest)
	case m.TransactionalID != nil:
		resp.ErrorCode = int16(wire.TransactionalIDAuthorizationFailed)
		c.txnRefused(*m.TransactionalID, string(r.ClientID))
	default:
		c.producerID(func(id int64, err error) {
			if resp.ErrorCode = int16(codeOf(err)); err == nil {
				resp.ProducerID, resp.ProducerEpoch = id, 0
			}
			r.ReplyMessage(resp)
		})
		return
	}
	r.ReplyMessage(resp)
}

// producerID gives out the next id of the loop's block, or of the next one.
func (c *Context) producerID(done func(id int64, err error)) {
	ids := &c.data.ids
	if ids.next < ids.end {
		ids.next++
		done(ids.next-1, nil)
		return
	}
	ids.waiting = append(ids.waiting, done)
	if ids.asked {
		return
	}
	ids.asked = true
	c.Control(func(k *controller.Controller, finish func(func())) {
		k.AllocateProducerIDs(func(first int64, count int32, err error) {
			finish(func() { ids.arrived(c, first, count, err) })
		})
	})
}

// arrived hands a block, or the lack of one, to those who wait.
func (ids *producerIDs) arrived(c *Context, first int64, count int32, err error) {
	waiting := ids.waiting
	ids.asked, ids.waiting = false, nil
	if err == nil {
		ids.next, ids.end = first, first+int64(count)
	}
	for _, done := range waiting {
		if err != nil {
			done(-1, err)
		} else {
			c.producerID(done)
		}
	}
}

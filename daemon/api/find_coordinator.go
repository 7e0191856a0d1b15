package api

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/coordinator"
	"kring/daemon/server"
	"kring/metadata"
	"kring/replication/controller"
	"kring/wire"
)

// The kinds of coordinators a client may ask for.
const (
	ofGroup       = 0
	ofTransaction = 1
	ofShare       = 2
)

var noMessage string

// findCoordinator names the broker that leads the partition of the group's offsets. Where their topic is missing it is made, and
// the client told to come again.
func findCoordinator(c *Context, r *server.Request) {
	m := kmsg.NewPtrFindCoordinatorRequest()
	if !decode(r, m) {
		return
	}
	resp := kmsg.NewPtrFindCoordinatorResponse()
	if r.Version < 4 {
		a := c.coordinatorOf(r, m.CoordinatorType, m.CoordinatorKey)
		code := wire.Code(a.ErrorCode)
		resp.ErrorCode, resp.NodeID, resp.Host, resp.Port = a.ErrorCode, a.NodeID, a.Host, a.Port
		switch resp.ErrorMessage = optional(code.Text()); {
		case code == wire.None:
			resp.ErrorMessage = optional(code.String())
		case m.CoordinatorType == ofTransaction:
			resp.ErrorMessage = a.ErrorMessage
		}
	} else {
		resp.Coordinators = make([]kmsg.FindCoordinatorResponseCoordinator, 0, len(m.CoordinatorKeys))
		for _, key := range m.CoordinatorKeys {
			resp.Coordinators = append(resp.Coordinators, c.coordinatorOf(r, m.CoordinatorType, key))
		}
	}
	r.ReplyMessage(resp)
}

// coordinatorOf finds the coordinator of one key.
func (c *Context) coordinatorOf(r *server.Request, kind int8, key string) kmsg.FindCoordinatorResponseCoordinator {
	a := kmsg.FindCoordinatorResponseCoordinator{Key: key, NodeID: metadata.NoBroker, Port: -1, ErrorMessage: &noMessage}
	switch {
	case kind == ofTransaction:
		// As InitProducerId: final. librdkafka shows the words, Java's client its own.
		a.ErrorCode, a.ErrorMessage = int16(wire.TransactionalIDAuthorizationFailed), optional(noTransactions)
		c.txnRefused(key, string(r.ClientID))
		return a
	case kind == ofShare && r.Version >= 6:
		a.ErrorCode = int16(wire.CoordinatorNotAvailable)
		return a
	case kind == ofShare:
		a.ErrorCode = int16(wire.InvalidRequest)
		return a
	case kind != ofGroup:
		a.ErrorCode, a.ErrorMessage = int16(wire.InvalidRequest), optional(wire.InvalidRequest.Text())
		return a
	}
	a.ErrorCode = int16(wire.CoordinatorNotAvailable)
	image := c.Image()
	t := image.Topic(OffsetsTopic)
	if t == nil {
		c.createOffsets()
		return a
	}
	i := coordinator.PartitionOf(key, c.OffsetsPartitions())
	if int(i) >= len(t.Partitions) {
		return a
	}
	leader := image.Broker(t.Partitions[i].Leader)
	if leader == nil {
		return a
	}
	if e, ok := leader.Endpoint(r.Conn.Listener); ok {
		a.ErrorCode, a.NodeID, a.Host, a.Port = int16(wire.None), leader.ID, e.Host, e.Port
	}
	return a
}

// createTellEvery bounds what clients, who ask again and again, make us log.
const createTellEvery = 10 * time.Second

// createOffsets has the topic of group offsets made, unless that is under way.
func (c *Context) createOffsets() {
	if !c.Node.groups.creating.CompareAndSwap(false, true) {
		return
	}
	c.Control(func(k *controller.Controller, finish func(func())) {
		autoCreate(c.Node, k, OffsetsTopic, func(err error) {
			n := &c.Node.groups
			finish(func() {})
			if n.creating.Store(false); err == nil {
				return
			}
			if now := c.Contexts[0].Loop.Now(); n.told == 0 || now-n.told >= createTellEvery {
				n.told = now
				c.Log.Error("the topic of group offsets cannot be created", "topic", OffsetsTopic, "error", err)
			}
		})
	})
}

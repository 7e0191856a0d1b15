package controller

import (
	"math"

	"kring/metadata"
	"kring/ring"
)

// producerIDs is the size of a block.
const producerIDs = 1000

// nextBlock is the block behind the last one; data is the node's, empty at first.
func nextBlock(data []byte, broker int32) (metadata.ProducerIDBlock, error) {
	next := metadata.ProducerIDBlock{Broker: broker, First: 0, Last: producerIDs - 1}
	if len(data) == 0 {
		return next, nil
	}
	last, err := metadata.DecodeProducerIDBlock(data)
	if err != nil {
		return next, err
	}
	if last.Last > math.MaxInt64-producerIDs {
		return next, &Error{Kind: UnknownServerError, Message: "there are no producer ids left"}
	}
	next.First, next.Last = last.Last+1, last.Last+producerIDs
	return next, nil
}

// AllocateProducerIDs gives a block of producer ids nobody else has: first to first+count-1.
func (c *Controller) AllocateProducerIDs(done func(first int64, count int32, err error)) {
	c.admin.run(func(t *ring.Task) {
		if !c.Active() {
			done(0, 0, &Error{Kind: NotController})
			return
		}
		block, err := c.takeBlock(t)
		if err != nil {
			done(0, 0, storeError(err))
			return
		}
		done(block.First, producerIDs, nil)
	})
}

func (c *Controller) takeBlock(t *ring.Task) (metadata.ProducerIDBlock, error) {
	for {
		data, st, err := c.store.get(t, metadata.PathProducerIDs, false)
		if err != nil {
			return metadata.ProducerIDBlock{}, err
		}
		next, err := nextBlock(data, c.self)
		if err != nil {
			return next, err
		}
		_, err = c.store.do(t, metadata.SetData(metadata.PathProducerIDs, next.Encode(), st.Version))
		if !is(err, metadata.ErrBadVersion) {
			return next, err
		}
	}
}

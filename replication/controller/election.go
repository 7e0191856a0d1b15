package controller

import (
	"fmt"

	"kring/metadata"
	"kring/ring"
)

// elect runs for controller and, when elected, takes over.
func (c *Controller) elect(t *ring.Task) error {
	won, err := c.run(t)
	if err != nil || !won {
		return err
	}
	c.active = true
	if err := c.takeOver(t); err != nil {
		c.active = false
		return err
	}
	return nil
}

// run tries to create /controller under the next epoch. When it fails another controller is known, and watched.
func (c *Controller) run(t *ring.Task) (won bool, err error) {
	if _, err := c.store.exists(t, metadata.PathController, true); err == nil {
		return false, c.learnController(t)
	} else if !is(err, metadata.ErrNoNode) {
		return false, err
	}
	data, st, err := c.store.get(t, metadata.PathControllerEpoch, false)
	if is(err, metadata.ErrNoNode) {
		_, err = c.store.do(t, metadata.Create(metadata.PathControllerEpoch, metadata.EncodeControllerEpoch(0)))
		if err == nil || is(err, metadata.ErrNodeExists) {
			data, st, err = c.store.get(t, metadata.PathControllerEpoch, false)
		}
	}
	if err != nil {
		return false, err
	}
	last, err := metadata.DecodeControllerEpoch(data)
	if err != nil {
		return false, err
	}
	epoch := last + 1
	node := metadata.ControllerNode{Broker: c.self, Timestamp: c.loop.UnixMilli(), KRaftEpoch: -1}
	results, err := c.store.do(t, metadata.CreateEphemeral(metadata.PathController, node.Encode()),
		metadata.SetData(metadata.PathControllerEpoch, metadata.EncodeControllerEpoch(epoch), st.Version))
	if err == nil {
		c.ctx = newContext(epoch, results[1].Stat.Version)
		c.log.Info("elected controller", "broker", c.self, "epoch", epoch)
		return true, nil
	}
	if !is(err, metadata.ErrNodeExists) && !is(err, metadata.ErrBadVersion) {
		return false, err
	}
	return c.wonUnheard(t, epoch)
}

// wonUnheard tells whether an election that seems lost was won by our first try, whose answer was lost.
func (c *Controller) wonUnheard(t *ring.Task, epoch metadata.ControllerEpoch) (bool, error) {
	data, st, err := c.store.get(t, metadata.PathControllerEpoch, false)
	if err != nil {
		return false, err
	}
	stored, err := metadata.DecodeControllerEpoch(data)
	if err != nil {
		return false, err
	}
	owner, err := c.store.exists(t, metadata.PathController, true)
	if err == nil && owner.EphemeralOwner == c.o.Store.Session() && stored == epoch {
		c.ctx = newContext(epoch, st.Version)
		return true, nil
	}
	return false, c.learnController(t)
}

// learnController notes who the controller is.
func (c *Controller) learnController(t *ring.Task) error {
	data, _, err := c.store.get(t, metadata.PathController, false)
	if is(err, metadata.ErrNoNode) {
		return nil // the watch has gone off
	}
	if err != nil {
		return err
	}
	node, err := metadata.DecodeController(data)
	if err != nil {
		return err
	}
	c.publish(func(e *metadata.Edit) { e.Controller(node.Broker, c.image.ControllerEpoch) }, nil)
	return nil
}

// controllerChanged is told that /controller came, went or changed.
func (c *Controller) controllerChanged(t *ring.Task) error {
	st, err := c.store.exists(t, metadata.PathController, true)
	switch {
	case is(err, metadata.ErrNoNode):
		c.resign()
		return c.elect(t)
	case err != nil:
		return err
	case st.EphemeralOwner != c.o.Store.Session():
		c.resign()
		return c.learnController(t)
	}
	return nil
}

func (c *Controller) resign() {
	c.active = false
	c.ctx = nil
}

// takeOver is what a new controller does first, in Kafka's order.
func (c *Controller) takeOver(t *ring.Task) error {
	if err := c.createFeature(t); err != nil {
		return err
	}
	if err := c.readFeature(t); err != nil {
		return err
	}
	if err := c.dropNotifications(t, metadata.PathLogDirEvents); err != nil {
		return err
	}
	if err := c.dropNotifications(t, metadata.PathISRChanges); err != nil {
		return err
	}
	if _, err := c.store.exists(t, metadata.PathController, true); err != nil {
		return err
	}
	if err := c.loadContext(t); err != nil {
		return fmt.Errorf("reading the state of the cluster: %w", err)
	}
	if err := c.loadDeletions(t); err != nil {
		return err
	}
	return c.startMachines(t)
}

func (c *Controller) createFeature(t *ring.Task) error {
	_, err := c.store.do(t, metadata.Create(metadata.PathFeature, metadata.FeatureNode{Version: 2, Enabled: true}.Encode()))
	if is(err, metadata.ErrNodeExists) {
		return nil
	}
	return err
}

// readFeature learns the epoch of the finalized features, and watches them.
func (c *Controller) readFeature(t *ring.Task) error {
	data, st, err := c.store.get(t, metadata.PathFeature, true)
	if is(err, metadata.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	node, err := metadata.DecodeFeature(data)
	if err != nil {
		return err
	}
	if len(node.Features) > 0 {
		c.log.Warn("finalized features are set that this broker does not know", "features", node.Features)
	}
	c.publish(func(e *metadata.Edit) { e.Features(int64(st.Version)) }, nil)
	return nil
}

// dropNotifications removes what an earlier controller left unread, and watches for more.
func (c *Controller) dropNotifications(t *ring.Task, dir string) error {
	names, err := c.store.children(t, dir, true)
	if err != nil {
		return err
	}
	multis := make([][]metadata.Op, len(names))
	for i, name := range names {
		multis[i] = c.ctx.fenced(metadata.Delete(dir+"/"+name, metadata.AnyVersion))
	}
	for _, a := range c.store.doAll(t, multis) {
		if err := c.ctx.verdict(a); err != nil && !is(err, metadata.ErrNoNode) {
			return err
		}
	}
	return nil
}

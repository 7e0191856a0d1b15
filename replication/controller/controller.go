package controller

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"

	"kring/metadata"
	"kring/ring"
)

// Controller runs the cluster's metadata for one broker. See the package comment for its loop.
type Controller struct {
	o     Options
	loop  ring.Loop
	log   *slog.Logger
	rand  *rand.Rand
	store client

	self        int32
	brokerEpoch metadata.BrokerEpoch
	clusterID   string

	events *lane // what the controller decides, one event after the other
	admin  *lane // requests that write
	config *lane // changes of configuration
	sender *lane // what the broker is told

	active bool
	ctx    *context // of the active controller
	image  *metadata.Image
	waits  waits

	notices  notices
	loading  map[string]bool // topics whose configuration the sender is reading
	reloaded map[string]bool // of those, the ones whose configuration changed meanwhile
	fenced   bool
	stopped  bool

	warnedOfQuotas bool
}

// New makes a controller that does nothing yet.
func New(o Options) *Controller {
	if o.ReservedBrokerMaxID == 0 {
		o.ReservedBrokerMaxID = 1000
	}
	c := &Controller{o: o, loop: o.Loop, log: o.Log, rand: o.Rand, store: client{o.Store}, self: metadata.NoBroker,
		image: metadata.NewImage(), loading: map[string]bool{}, reloaded: map[string]bool{}}
	if c.rand == nil {
		c.rand = o.Loop.Rand()
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.events, c.admin, c.config, c.sender = newLane(o.Loop), newLane(o.Loop), newLane(o.Loop), newLane(o.Loop)
	c.waits.loop = o.Loop
	c.notices.seen = map[string]int64{}
	return c
}

// Start runs for controller, builds the picture of the cluster, and returns when the broker leads what it is to lead and
// OnImage has been called. From then on requests are served.
func (c *Controller) Start(t *ring.Task) error {
	var failed error
	await(t, func(done func()) {
		c.config.run(func(t *ring.Task) { c.startConfigs(t) })
		c.events.run(func(t *ring.Task) {
			if failed = c.elect(t); failed != nil {
				done()
				return
			}
			// Behind all that the election has sent.
			c.sender.run(func(*ring.Task) { done() })
		})
	})
	return failed
}

// Stop ends what is under way. The broker leaves the cluster, and the controller's office falls free, when the store is closed.
func (c *Controller) Stop(t *ring.Task) {
	if c.stopped {
		return
	}
	c.stopped = true
	c.waits.fail(&Error{Kind: NotController})
	for _, l := range []*lane{c.admin, c.events, c.config, c.sender} {
		l.close(t)
	}
	c.active = false
}

// Image is the latest picture.
func (c *Controller) Image() *metadata.Image { return c.image }

// Active tells whether this broker is the controller.
func (c *Controller) Active() bool { return c.active && !c.fenced && !c.stopped }

// errMoved: another controller has been elected; what we decide does not count any more.
var errMoved = errors.New("the controller has moved")

// event queues a decision. An error ends it: the office is given up if it has moved, the rest is logged.
func (c *Controller) event(name string, fn func(t *ring.Task) error) {
	c.events.run(func(t *ring.Task) {
		if c.fenced || c.stopped {
			return
		}
		c.ended(t, name, fn(t))
	})
}

// ended draws the consequence of how an event ended.
func (c *Controller) ended(t *ring.Task, name string, err error) {
	switch {
	case err == nil:
	case is(err, errMoved):
		c.log.Warn("resigning as controller: another one was elected", "event", name)
		c.resign()
		if err := c.elect(t); err != nil {
			c.log.Error("election failed", "error", err)
		}
	case is(err, metadata.ErrFenced) || is(err, metadata.ErrSessionExpired):
		c.fence(err)
	default:
		c.log.Error("event failed", "event", name, "error", err)
	}
}

// ifActive is event for what only the controller does.
func (c *Controller) ifActive(name string, fn func(t *ring.Task) error) {
	c.event(name, func(t *ring.Task) error {
		if !c.active {
			return nil
		}
		return fn(t)
	})
}

// onEvent hears the store's watches.
func (c *Controller) onEvent(e metadata.Event) {
	switch {
	case e.Type == metadata.Expired:
		c.fence(metadata.ErrSessionExpired)
	case e.Path == metadata.PathController:
		c.event("ControllerChange", c.controllerChanged)
	case e.Path == metadata.PathTopics:
		c.ifActive("TopicChange", c.topicsChanged)
	case e.Path == metadata.PathDeleteTopics:
		c.ifActive("TopicDeletion", c.deletionsChanged)
	case e.Path == metadata.PathLogDirEvents:
		c.ifActive("LogDirEventNotification", c.logDirEvents)
	case e.Path == metadata.PathConfigChanges:
		c.config.run(func(t *ring.Task) { c.configsChanged(t) })
	case e.Path == metadata.PathFeature:
		c.event("FeatureChange", c.readFeature)
	case strings.HasPrefix(e.Path, metadata.PathTopics+"/") && e.Type == metadata.NodeDataChanged:
		topic := e.Path[len(metadata.PathTopics)+1:]
		c.ifActive("PartitionModifications", func(t *ring.Task) error { return c.partitionsChanged(t, topic) })
	}
}

// fence ends everything: the store keeps nothing any more, or our session is gone.
func (c *Controller) fence(err error) {
	if c.fenced || c.stopped {
		return
	}
	c.fenced, c.active = true, false
	c.log.Error("the metadata store is lost; this broker can go on no longer", "error", err)
	c.waits.fail(&Error{Kind: NotController})
	if c.o.OnFenced != nil {
		c.o.OnFenced(err)
	}
}

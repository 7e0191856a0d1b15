package controller

import (
	"kring/metadata"
	"kring/ring"
)

// Controller runs the cluster's metadata for one broker. See the package comment for its loop.
type Controller struct {
	o Options
}

// New makes a controller that does nothing yet.
func New(o Options) *Controller { return &Controller{o: o} }

// Prepare makes the nodes every cluster has and reads the cluster's id, or creates it. It comes first.
func (c *Controller) Prepare(t *ring.Task) (clusterID string, err error) { panic("todo") }

// BrokerID is the id of the broker: the configured one, or with -1 a new one from the store. A broker that finds its id in
// meta.properties passes that one.
func (c *Controller) BrokerID(t *ring.Task, configured int32) (int32, error) { panic("todo") }

// BrokerConfigs reads the dynamic configuration of a broker and of all brokers, before the broker is set up.
func (c *Controller) BrokerConfigs(t *ring.Task, id int32) (own, all metadata.Config, err error) {
	panic("todo")
}

// Topics reads the topics with their ids and configurations before the broker is registered, so that logs can be loaded.
func (c *Controller) Topics(t *ring.Task) (ids map[string]metadata.TopicID, configs map[string]metadata.Config, err error) {
	panic("todo")
}

// Register announces the broker. Its epoch is what the controller's requests to it are checked against.
func (c *Controller) Register(t *ring.Task, r Registration) (metadata.BrokerEpoch, error) {
	panic("todo")
}

// Start runs for controller, builds the picture of the cluster, and returns when the broker leads what it is to lead and
// OnImage has been called. From then on requests are served.
func (c *Controller) Start(t *ring.Task) error { panic("todo") }

// Stop ends what is under way, gives the controller's office up and takes the broker out of the cluster.
func (c *Controller) Stop(t *ring.Task) { panic("todo") }

// Image is the latest picture.
func (c *Controller) Image() *metadata.Image { panic("todo") }

// Active tells whether this broker is the controller.
func (c *Controller) Active() bool { panic("todo") }

// CreateTopics creates topics and waits until the picture shows each with a leader for every partition, or for the timeout:
// those not seen by then are TimedOut, and may still come. Results are in the order of the request; names must differ.
func (c *Controller) CreateTopics(topics []CreateTopic, call Call, done func([]CreatedTopic)) {
	panic("todo")
}

// AutoCreate creates a topic with the broker's defaults because a client asked for it. It waits for nothing: the client asks
// again. done gets nil when the nodes are written (or were already there).
func (c *Controller) AutoCreate(name string, partitions int32, replicationFactor int16, config metadata.Config, done func(error)) {
	panic("todo")
}

// DeleteTopics deletes topics and waits until the picture has lost them or for the timeout.
func (c *Controller) DeleteTopics(topics []DeleteTopic, call Call, done func([]DeletedTopic)) {
	panic("todo")
}

// CreatePartitions adds partitions to topics and waits for their leaders as CreateTopics does.
func (c *Controller) CreatePartitions(topics []CreatePartitions, call Call, done func([]error)) {
	panic("todo")
}

// AlterConfigs changes configurations, each resource by itself; done comes when they are stored, one error (or nil) each.
func (c *Controller) AlterConfigs(alter []AlterConfig, validateOnly bool, done func([]error)) {
	panic("todo")
}

// AllocateProducerIDs gives a block of producer ids nobody else has: first to first+count-1.
func (c *Controller) AllocateProducerIDs(done func(first int64, count int32, err error)) {
	panic("todo")
}

// LogDirFailed tells the cluster that a log dir of this broker has failed: what lives there goes offline as BecomeLeader
// answers with errors for it.
func (c *Controller) LogDirFailed() { panic("todo") }

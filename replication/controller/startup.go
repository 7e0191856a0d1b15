package controller

import (
	"fmt"
	"slices"

	"kring/metadata"
	"kring/ring"
)

// KnowsCluster says whether the store holds a cluster's id. It changes nothing.
func (c *Controller) KnowsCluster(t *ring.Task) (bool, error) {
	_, _, err := c.store.get(t, metadata.PathClusterID, false)
	if is(err, metadata.ErrNoNode) {
		return false, nil
	}
	return err == nil, err
}

// Prepare makes the nodes every cluster has and reads the cluster's id, or creates it. It comes first.
func (c *Controller) Prepare(t *ring.Task) (clusterID string, err error) {
	c.o.Store.Events(c.onEvent)
	for _, path := range metadata.PersistentPaths {
		if err := c.store.createPath(t, path, nil); err != nil && !is(err, metadata.ErrNodeExists) {
			return "", err
		}
	}
	data, _, err := c.store.get(t, metadata.PathClusterID, false)
	if is(err, metadata.ErrNoNode) {
		node := metadata.ClusterIDNode{ID: metadata.NewClusterID(c.rand)}
		if err = c.store.createPath(t, metadata.PathClusterID, node.Encode()); err == nil {
			c.clusterID = node.ID
			return node.ID, nil
		}
		if is(err, metadata.ErrNodeExists) {
			data, _, err = c.store.get(t, metadata.PathClusterID, false)
		}
	}
	if err != nil {
		return "", err
	}
	node, err := metadata.DecodeClusterID(data)
	c.clusterID = node.ID
	return node.ID, err
}

// BrokerID is the id of the broker: the configured one, or with -1 a new one from the store. A broker that finds its id in
// meta.properties passes that one.
func (c *Controller) BrokerID(t *ring.Task, configured int32) (int32, error) {
	if configured != metadata.NoBroker {
		return configured, nil
	}
	r, err := c.store.do(t, metadata.SetData(metadata.PathBrokerSeqID, []byte{}, metadata.AnyVersion))
	if err != nil {
		return 0, err
	}
	return c.o.ReservedBrokerMaxID + r[0].Stat.Version, nil
}

// BrokerConfigs reads the dynamic configuration of a broker and of all brokers, before the broker is set up.
func (c *Controller) BrokerConfigs(t *ring.Task, id int32) (own, all metadata.Config, err error) {
	if own, err = c.readConfig(t, metadata.BrokerConfigPath(id)); err == nil {
		all, err = c.readConfig(t, metadata.BrokerConfigPath(metadata.NoBroker))
	}
	return own, all, err
}

// readConfig reads a configuration; an absent one is empty.
func (c *Controller) readConfig(t *ring.Task, path string) (metadata.Config, error) {
	data, _, err := c.store.get(t, path, false)
	if is(err, metadata.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	node, err := metadata.DecodeConfig(data)
	return node.Config, err
}

// Topics reads the topics with their ids and configurations before the broker is registered, so that logs can be loaded. A
// topic whose nodes cannot be read is left out, and logged.
func (c *Controller) Topics(t *ring.Task) (ids map[string]metadata.TopicID, configs map[string]metadata.Config, err error) {
	names, err := c.store.children(t, metadata.PathTopics, false)
	if err != nil {
		return nil, nil, err
	}
	ids, configs = make(map[string]metadata.TopicID, len(names)), make(map[string]metadata.Config, len(names))
	paths := make([]string, 0, 2*len(names))
	for _, name := range names {
		paths = append(paths, metadata.TopicPath(name), metadata.TopicConfigPath(name))
	}
	all := c.store.getAll(t, paths, false)
	for i, name := range names {
		topic, config := all[2*i], all[2*i+1]
		node, err := metadata.DecodeTopic(topic.data)
		if topic.err != nil || err != nil {
			c.log.Error("topic cannot be read", "topic", name, "error", firstError(topic.err, err))
			continue
		}
		ids[name] = node.ID
		conf, err := metadata.DecodeConfig(config.data)
		if err != nil {
			c.log.Error("topic's configuration cannot be read", "topic", name, "error", err)
		}
		configs[name] = conf.Config
	}
	return ids, configs, nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Register announces the broker. Its epoch is what the controller's requests to it are checked against.
func (c *Controller) Register(t *ring.Task, r Registration) (metadata.BrokerEpoch, error) {
	if err := c.checkEndpoints(t, r); err != nil {
		return 0, err
	}
	node := metadata.Registration{Version: 5, Endpoints: r.Endpoints, Rack: r.Rack, JMXPort: -1, Timestamp: c.loop.UnixMilli()}
	path := metadata.BrokerPath(r.ID)
	c.self = r.ID
	results, err := c.store.do(t, metadata.CreateEphemeral(path, nil), metadata.SetData(path, node.Encode(), 0))
	if err == nil {
		c.brokerEpoch = metadata.BrokerEpoch(results[1].Stat.Czxid)
		return c.brokerEpoch, nil
	}
	if !is(err, metadata.ErrNodeExists) {
		return 0, err
	}
	st, err := c.store.exists(t, path, false)
	if err != nil {
		return 0, err
	}
	if st.EphemeralOwner != c.o.Store.Session() {
		return 0, fmt.Errorf("broker %d is already registered by session %#x; "+
			"if that was this broker before a crash, its session must expire first", r.ID, int64(st.EphemeralOwner))
	}
	c.brokerEpoch = metadata.BrokerEpoch(st.Czxid)
	return c.brokerEpoch, nil
}

// checkEndpoints refuses an address that another broker advertises.
func (c *Controller) checkEndpoints(t *ring.Task, r Registration) error {
	brokers, err := c.readBrokers(t, false)
	if err != nil {
		return err
	}
	for _, b := range brokers {
		for _, e := range b.Endpoints {
			same := func(own metadata.Endpoint) bool { return own.Host == e.Host && own.Port == e.Port }
			if b.ID != r.ID && slices.ContainsFunc(r.Endpoints, same) {
				return fmt.Errorf("broker %d already advertises %s", b.ID, metadata.JoinHostPort(e.Host, e.Port))
			}
		}
	}
	return nil
}

// readBrokers reads the registered brokers, by id; watch arms a child watch on the list and a data watch on each.
func (c *Controller) readBrokers(t *ring.Task, watch bool) ([]*metadata.Broker, error) {
	names, err := c.store.children(t, metadata.PathBrokerIDs, watch)
	if err != nil {
		return nil, err
	}
	ids := make([]int32, 0, len(names))
	for _, name := range names {
		if id, ok := metadata.ParseID(name); ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	paths := make([]string, len(ids))
	for i, id := range ids {
		paths[i] = metadata.BrokerPath(id)
	}
	var brokers []*metadata.Broker
	for i, g := range c.store.getAll(t, paths, watch) {
		if is(g.err, metadata.ErrNoNode) {
			continue
		}
		if g.err != nil {
			return nil, g.err
		}
		node, err := metadata.DecodeRegistration(g.data)
		if err != nil {
			c.log.Error("broker's registration cannot be read", "broker", ids[i], "error", err)
			continue
		}
		brokers = append(brokers, &metadata.Broker{ID: ids[i], Epoch: metadata.BrokerEpoch(g.stat.Czxid),
			Endpoints: node.Endpoints, Rack: node.Rack})
	}
	return brokers, nil
}

package controller

import (
	"fmt"
	"slices"
	"strings"

	"kring/metadata"
	"kring/ring"
)

// configWrite is a configuration to be stored at a path.
type configWrite struct {
	path   string
	config metadata.Config
}

// writeConfigs stores configurations as Kafka does: in place if the node is there and the controller is no other meanwhile, else
// as a new node. Errors are *Error.
func (c *Controller) writeConfigs(t *ring.Task, writes []configWrite) []error {
	errs := make([]error, len(writes))
	_, st, err := c.store.get(t, metadata.PathController, false)
	if err != nil {
		for i := range errs {
			errs[i] = storeError(err)
		}
		return errs
	}
	multis := make([][]metadata.Op, len(writes))
	for i, w := range writes {
		multis[i] = []metadata.Op{metadata.Check(metadata.PathController, st.Version),
			metadata.SetData(w.path, metadata.ConfigNode{Config: w.config}.Encode(), metadata.AnyVersion)}
	}
	var missing []int
	for i, a := range c.store.doAll(t, multis) {
		switch {
		case a.err == nil:
		case is(a.err, metadata.ErrNoNode) && len(a.results) == 2 && a.results[0].Err == nil:
			missing = append(missing, i)
		default:
			errs[i] = storeError(a.err)
		}
	}
	multis = multis[:0]
	for _, i := range missing {
		multis = append(multis, []metadata.Op{metadata.Create(writes[i].path, metadata.ConfigNode{Config: writes[i].config}.Encode())})
	}
	for j, a := range c.store.doAll(t, multis) {
		i := missing[j]
		if is(a.err, metadata.ErrNoNode) {
			a.err = c.store.createPath(t, writes[i].path, metadata.ConfigNode{Config: writes[i].config}.Encode())
		}
		if a.err != nil && !is(a.err, metadata.ErrNodeExists) {
			errs[i] = storeError(a.err)
		}
	}
	return errs
}

// AlterConfigs changes configurations, each resource by itself; done comes when they are stored, one error (or nil) each.
func (c *Controller) AlterConfigs(alter []AlterConfig, validateOnly bool, done func([]error)) {
	c.alter(len(alter), done, func(t *ring.Task, i int) error { return c.alterConfig(t, &alter[i], validateOnly) })
}

// alter has each of n parts of a request decided by itself, and answers with one error (or nil) for each.
func (c *Controller) alter(n int, done func([]error), decide func(t *ring.Task, i int) error) {
	errs := make([]error, n)
	refuse := func() {
		for i := range errs {
			errs[i] = &Error{Kind: NotController}
		}
		done(errs)
	}
	if c.closing(refuse) {
		return
	}
	c.admin.run(func(t *ring.Task) {
		if c.fenced || c.stopped {
			refuse()
			return
		}
		for i := range errs {
			errs[i] = decide(t, i)
		}
		done(errs)
	})
}

func (c *Controller) alterConfig(t *ring.Task, a *AlterConfig, validateOnly bool) error {
	if err := checkOps(a.Ops, a.Replace); err != nil {
		return err
	}
	var path, entity string
	byDefault := c.o.Configs.TopicDefault
	switch a.Resource {
	case TopicResource:
		if metadata.CheckTopicName(a.Topic) != nil || c.image.Topic(a.Topic) == nil {
			return &Error{UnknownTopic, fmt.Sprintf("The topic '%s' does not exist.", a.Topic)}
		}
		path, entity = metadata.TopicConfigPath(a.Topic), metadata.TopicEntity(a.Topic)
	case BrokerResource:
		if a.Broker != metadata.NoBroker && a.Broker != c.self {
			return &Error{InvalidRequest, fmt.Sprintf("Unexpected broker id, expected %d, but received %d", c.self, a.Broker)}
		}
		path, entity = metadata.BrokerConfigPath(a.Broker), metadata.BrokerEntity(a.Broker)
		byDefault = c.o.Configs.BrokerDefault
	default:
		return &Error{InvalidRequest, "only topics and brokers have a configuration to be altered"}
	}
	old, err := c.readConfig(t, path)
	if err != nil {
		return storeError(err)
	}
	next, err := alter(old, a.Ops, a.Replace, byDefault)
	if err != nil {
		return err
	}
	if err := c.checkConfig(a, next); err != nil || validateOnly {
		return err
	}
	if err := c.writeConfigs(t, []configWrite{{path, next}})[0]; err != nil {
		return err
	}
	node := metadata.ConfigChangeNode{Entity: entity}
	if _, err := c.store.do(t, metadata.CreateSequential(metadata.ConfigChangePrefix, node.Encode())); err != nil {
		return storeError(err)
	}
	c.showConfig(entity, next) // who is answered sees it, though the notification has yet to come round
	return nil
}

func (c *Controller) checkConfig(a *AlterConfig, next metadata.Config) error {
	rules := &c.o.Configs
	if a.Resource == TopicResource && rules.CheckTopic != nil {
		if err := rules.CheckTopic(next); err != nil {
			return &Error{InvalidConfig, err.Error()}
		}
	}
	if a.Resource == BrokerResource && rules.CheckBroker != nil {
		// Kafka calls a bad value of a broker's an invalid request, other than a topic's.
		if err := rules.CheckBroker(a.Broker, next); err != nil {
			return &Error{InvalidRequest, err.Error()}
		}
	}
	return nil
}

// changeLife is how long a notification of a change is kept: every broker has read it by then.
const changeLife = 15 * 60 * 1000

// notices are the notifications of changed configurations that are in the store.
type notices struct {
	last int64            // number of the last one carried out
	seen map[string]int64 // creation times, Unix ms, by name
}

// startConfigs reads the brokers' dynamic configurations and begins to listen for changes.
func (c *Controller) startConfigs(t *ring.Task) {
	c.notices.last = -1
	for _, id := range []int32{metadata.NoBroker, c.self} {
		c.reloadConfig(t, metadata.BrokerEntity(id))
	}
	c.warnOfQuotas(t)
	c.configsChanged(t)
}

// configsChanged carries out new notifications in their order, each by reading the entity's whole configuration again, and
// removes those that are old.
func (c *Controller) configsChanged(t *ring.Task) {
	names, err := c.store.children(t, metadata.PathConfigChanges, true)
	if err != nil {
		c.log.Error("changes of configurations cannot be read", "error", err)
		return
	}
	slices.SortFunc(names, func(a, b string) int {
		x, _ := metadata.SequenceNumber(a)
		y, _ := metadata.SequenceNumber(b)
		return int(x - y)
	})
	var fresh, paths []string
	for _, name := range names {
		if _, known := c.notices.seen[name]; !known {
			fresh = append(fresh, name)
			paths = append(paths, metadata.PathConfigChanges+"/"+name)
		}
	}
	for i, g := range c.store.getAll(t, paths, false) {
		n, numbered := metadata.SequenceNumber(fresh[i])
		if g.err != nil || !numbered {
			continue
		}
		c.notices.seen[fresh[i]] = g.stat.Ctime
		if n <= c.notices.last {
			continue
		}
		c.notices.last = n
		node, err := metadata.DecodeConfigChange(g.data)
		if err != nil {
			c.log.Error("change of a configuration cannot be read", "path", paths[i], "error", err)
			continue
		}
		c.reloadConfig(t, node.Entity)
	}
	c.purgeNotices(t, names)
}

func (c *Controller) purgeNotices(t *ring.Task, names []string) {
	var old [][]metadata.Op
	for _, name := range names {
		if made, known := c.notices.seen[name]; known && c.loop.UnixMilli()-made > changeLife {
			old = append(old, []metadata.Op{metadata.Delete(metadata.PathConfigChanges+"/"+name, metadata.AnyVersion)})
			delete(c.notices.seen, name)
		}
	}
	for _, a := range c.store.doAll(t, old) {
		if a.err != nil && !is(a.err, metadata.ErrNoNode) {
			c.log.Error("old change of a configuration cannot be removed", "error", a.err)
		}
	}
}

// reloadConfig reads an entity's configuration into the picture and tells the broker.
func (c *Controller) reloadConfig(t *ring.Task, entity string) {
	kind, _, _ := strings.Cut(entity, "/")
	switch kind {
	case "topics", "brokers":
	case "users", "clients", "ips":
		c.warnOfQuotas(t)
		return
	default:
		return
	}
	config, err := c.readConfig(t, "/config/"+entity)
	if err != nil {
		c.log.Error("configuration cannot be read; the last one stays", "entity", entity, "error", err)
		return
	}
	c.showConfig(entity, config)
}

// showConfig puts the configuration of a topic, a broker or all brokers into the picture, and in force.
func (c *Controller) showConfig(entity string, config metadata.Config) {
	kind, name, _ := strings.Cut(entity, "/")
	if kind == "topics" {
		c.showTopicConfig(name, config)
		return
	}
	id, ok := metadata.ParseID(name)
	if name == metadata.DefaultEntity {
		id, ok = metadata.NoBroker, true
	}
	if !ok || c.image.BrokerConfig(id).Equal(config) {
		return
	}
	c.log.Info("dynamic broker settings", "broker", name, "settings", config.Names())
	c.publish(func(e *metadata.Edit) { e.SetBrokerConfig(id, config) }, nil)
	if c.o.OnBrokerConfig != nil {
		c.o.OnBrokerConfig(id, config)
	}
}

func (c *Controller) showTopicConfig(name string, config metadata.Config) {
	if c.loading[name] {
		c.reloaded[name] = true
	}
	old := c.image.Topic(name)
	if old == nil || old.Config.Equal(config) {
		return
	}
	c.log.Info("topic settings changed", "topic", name, "settings", config.Names())
	next := *old
	next.Config = config
	c.publish(func(e *metadata.Edit) { e.SetTopic(&next) }, nil)
	if c.o.OnTopicConfig != nil {
		c.o.OnTopicConfig(name, config)
	}
}

package controller

import (
	"errors"
	"fmt"

	"kring/metadata"
	"kring/ring"
)

// storeError makes an *Error of what went wrong with the store.
func storeError(err error) error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	return &Error{UnknownServerError, err.Error()}
}

// others is what a request finds of other topics: in the picture, in the store, and what it has made itself.
type others struct {
	c       *Controller
	stored  map[string]bool
	byPlain map[string][]string // by collision key; made when first needed
}

func (o *others) has(name string) bool { return o.stored[name] }

func (o *others) collidesWith(name string) []string {
	if metadata.CollisionKey(name) == name && !containsUnderscore(name) {
		return nil
	}
	if o.byPlain == nil {
		o.byPlain = map[string][]string{}
		for x := range o.c.image.Topics() {
			o.note(x.Name)
		}
	}
	var out []string
	for _, other := range o.byPlain[metadata.CollisionKey(name)] {
		if other != name {
			out = append(out, other)
		}
	}
	return out
}

func (o *others) note(name string) {
	if o.byPlain != nil {
		key := metadata.CollisionKey(name)
		o.byPlain[key] = append(o.byPlain[key], name)
	}
}

func containsUnderscore(name string) bool {
	for i := range len(name) {
		if name[i] == '_' {
			return true
		}
	}
	return false
}

// look finds out which of the names exist in the store.
func (c *Controller) look(t *ring.Task, names []string) (*others, error) {
	paths := make([]string, 0, len(names))
	for _, name := range names {
		if metadata.CheckTopicName(name) == nil {
			paths = append(paths, metadata.TopicPath(name))
		}
	}
	o := &others{c: c, stored: map[string]bool{}}
	for i, g := range c.store.getAll(t, paths, false) {
		switch {
		case g.err == nil:
			o.stored[paths[i][len(metadata.PathTopics)+1:]] = true
		case !is(g.err, metadata.ErrNoNode):
			return nil, g.err
		}
	}
	return o, nil
}

// CreateTopics creates topics and waits until the picture shows each with a leader for every partition, or for the timeout:
// those not seen by then are TimedOut, those of which a log cannot be made StorageError, and both may still come. Results are in the
// order of the request; names must differ.
func (c *Controller) CreateTopics(topics []CreateTopic, call Call, done func([]CreatedTopic)) {
	out := make([]CreatedTopic, len(topics))
	for i := range topics {
		out[i].Name = topics[i].Name
	}
	fail := func(err error) {
		for i := range out {
			out[i].Err = err
		}
		done(out)
	}
	if c.closing(func() { fail(&Error{Kind: NotController}) }) {
		return
	}
	c.admin.run(func(t *ring.Task) {
		if !c.Active() {
			fail(&Error{Kind: NotController})
			return
		}
		made, err := c.createTopics(t, topics, out, call.ValidateOnly)
		if err != nil {
			fail(storeError(err))
			return
		}
		c.waitForLeaders(made, call, func(missing map[string]error, failed error) {
			for i := range out {
				if why, late := missing[out[i].Name]; late && out[i].Err == nil {
					out[i].Err = waitError(why, failed)
				}
			}
			done(out)
		})
	})
}

// closing answers, later, a request that comes after the end.
func (c *Controller) closing(refuse func()) bool {
	if !c.stopped && !c.fenced {
		return false
	}
	op := &ring.Op{Done: func(*ring.Op) { refuse() }}
	c.loop.AtTurnEnd(op)
	return true
}

func waitError(why, failed error) error {
	switch {
	case why != nil:
		return why
	case failed != nil:
		return failed
	}
	return &Error{Kind: TimedOut}
}

// createTopics validates and writes; it gives the names of the topics it made.
func (c *Controller) createTopics(t *ring.Task, topics []CreateTopic, out []CreatedTopic, validateOnly bool) (made []string, err error) {
	names := make([]string, len(topics))
	for i := range topics {
		names[i] = topics[i].Name
	}
	o, err := c.look(t, names)
	if err != nil {
		return nil, err
	}
	var nodes []newTopic
	for i, req := range topics {
		p, err := c.checkCreate(req, c.image.Topic(req.Name) != nil, o)
		if err != nil {
			out[i].Err = err
			continue
		}
		out[i].Partitions, out[i].ReplicationFactor = int32(len(p.assignment)), int16(len(p.assignment[0].Replicas))
		out[i].Config = p.config
		if validateOnly {
			continue
		}
		o.note(req.Name)
		out[i].ID = metadata.NewTopicID(c.rand)
		nodes = append(nodes, newTopic{req.Name, out[i].ID, p, i})
	}
	for i, err := range c.writeTopics(t, nodes) {
		if err != nil {
			out[nodes[i].at] = CreatedTopic{Name: nodes[i].name, Err: err}
			continue
		}
		made = append(made, nodes[i].name)
	}
	return made, nil
}

// newTopic is a topic about to be written; at is its place in the request.
type newTopic struct {
	name string
	id   metadata.TopicID
	plan
	at int
}

// writeTopics writes configurations and then topics, as any broker may: not checked against the controller's epoch.
func (c *Controller) writeTopics(t *ring.Task, topics []newTopic) []error {
	errs := make([]error, len(topics))
	configs := make([]configWrite, len(topics))
	for i, x := range topics {
		configs[i] = configWrite{metadata.TopicConfigPath(x.name), x.config}
	}
	for i, err := range c.writeConfigs(t, configs) {
		errs[i] = err
	}
	var multis [][]metadata.Op
	var at []int
	for i, x := range topics {
		if errs[i] == nil {
			node := metadata.TopicNode{Partitions: x.assignment, ID: x.id}
			multis = append(multis, []metadata.Op{metadata.Create(metadata.TopicPath(x.name), node.Encode())})
			at = append(at, i)
		}
	}
	for j, a := range c.store.doAll(t, multis) {
		i := at[j]
		switch {
		case is(a.err, metadata.ErrNodeExists):
			if !c.wroteBefore(t, topics[i]) {
				errs[i] = &Error{TopicExists, fmt.Sprintf("Topic '%s' already exists.", topics[i].name)}
			}
		case a.err != nil:
			errs[i] = storeError(a.err)
		}
		if x := topics[i]; errs[i] == nil {
			c.log.Info("topic created", "topic", x.name, "id", x.id, "partitions", len(x.assignment))
		}
	}
	return errs
}

// wroteBefore tells whether a topic that is there is the one we wanted to write: its id is ours.
func (c *Controller) wroteBefore(t *ring.Task, x newTopic) bool {
	data, _, err := c.store.get(t, metadata.TopicPath(x.name), false)
	if err != nil {
		return false
	}
	node, err := metadata.DecodeTopic(data)
	return err == nil && node.ID == x.id
}

// waitForLeaders waits until every partition of the topics has a leader in the picture.
func (c *Controller) waitForLeaders(names []string, call Call, done func(map[string]error, error)) {
	if call.ValidateOnly || len(names) == 0 {
		done(nil, nil)
		return
	}
	if call.Timeout <= 0 {
		missing := map[string]error{}
		for _, name := range names {
			missing[name] = nil
		}
		done(missing, nil)
		return
	}
	c.waits.until(c.image, names, call.Timeout, func(m *metadata.Image, name string) bool {
		x := m.Topic(name)
		return x != nil && led(x)
	}, done).leaders = true
}

func led(x *metadata.Topic) bool {
	for i := range x.Partitions {
		if x.Partitions[i].Leader == metadata.NoLeader {
			return false
		}
	}
	return true
}

// AutoCreate creates a topic with the broker's defaults because a client asked for it. It waits for nothing: the client asks
// again. done gets nil when the nodes are written (or were already there).
func (c *Controller) AutoCreate(name string, partitions int32, replicationFactor int16, config metadata.Config, done func(error)) {
	if c.closing(func() { done(&Error{Kind: NotController}) }) {
		return
	}
	c.admin.run(func(t *ring.Task) {
		if c.fenced || c.stopped {
			done(&Error{Kind: NotController})
			return
		}
		if c.image.Topic(name) != nil {
			done(nil)
			return
		}
		req := CreateTopic{Name: name, Partitions: partitions, ReplicationFactor: replicationFactor}
		for _, s := range config {
			req.Configs = append(req.Configs, ConfigValue{s.Name, &s.Value})
		}
		out := make([]CreatedTopic, 1)
		_, err := c.createTopics(t, []CreateTopic{req}, out, false)
		if err == nil {
			err = out[0].Err
		}
		var refused *Error
		if errors.As(err, &refused) && refused.Kind == TopicExists {
			err = nil
		} else if err != nil {
			err = storeError(err)
		}
		done(err)
	})
}

// CreatePartitions adds partitions to topics and waits for their leaders as CreateTopics does.
func (c *Controller) CreatePartitions(topics []CreatePartitions, call Call, done func([]error)) {
	errs := make([]error, len(topics))
	fail := func(err error) {
		for i := range errs {
			errs[i] = err
		}
		done(errs)
	}
	if c.closing(func() { fail(&Error{Kind: NotController}) }) {
		return
	}
	c.admin.run(func(t *ring.Task) {
		if !c.Active() {
			fail(&Error{Kind: NotController})
			return
		}
		counts := map[string]int32{}
		var made []string
		for i, req := range topics {
			if errs[i] = c.addPartitions(t, req, call.ValidateOnly); errs[i] == nil && !call.ValidateOnly {
				made = append(made, req.Topic)
				counts[req.Topic] = req.Count
			}
		}
		c.waitForPartitions(made, counts, call, func(missing map[string]error, failed error) {
			for i, req := range topics {
				if why, late := missing[req.Topic]; late && errs[i] == nil {
					errs[i] = waitError(why, failed)
				}
			}
			done(errs)
		})
	})
}

func (c *Controller) waitForPartitions(names []string, counts map[string]int32, call Call, done func(map[string]error, error)) {
	if len(names) == 0 || call.Timeout <= 0 {
		c.waitForLeaders(names, call, done)
		return
	}
	c.waits.until(c.image, names, call.Timeout, func(m *metadata.Image, name string) bool {
		x := m.Topic(name)
		return x != nil && int32(len(x.Partitions)) >= counts[name] && led(x)
	}, done).leaders = true
}

func (c *Controller) addPartitions(t *ring.Task, req CreatePartitions, validateOnly bool) error {
	if x := c.ctx; x != nil && x.topics[req.Topic] != nil && x.topics[req.Topic].deleting {
		return &Error{InvalidTopicName, "The topic is queued for deletion."}
	}
	if metadata.CheckTopicName(req.Topic) != nil {
		_, err := c.checkAddition(req, metadata.TopicNode{}, false)
		return err
	}
	data, _, err := c.store.get(t, metadata.TopicPath(req.Topic), false)
	if err != nil && !is(err, metadata.ErrNoNode) {
		return storeError(err)
	}
	exists := err == nil
	var node metadata.TopicNode
	if exists {
		if node, err = metadata.DecodeTopic(data); err != nil {
			return storeError(err)
		}
	}
	added, err := c.checkAddition(req, node, exists)
	if err != nil || validateOnly {
		return err
	}
	node.Partitions = append(node.Partitions, added...)
	if _, err := c.store.do(t, metadata.SetData(metadata.TopicPath(req.Topic), node.Encode(), metadata.AnyVersion)); err != nil {
		return storeError(err)
	}
	c.log.Info("partitions added", "topic", req.Topic, "partitions", len(node.Partitions))
	return nil
}

// DeleteTopics deletes topics and waits until the picture has lost them or for the timeout.
func (c *Controller) DeleteTopics(topics []DeleteTopic, call Call, done func([]DeletedTopic)) {
	out := make([]DeletedTopic, len(topics))
	for i, req := range topics {
		out[i] = DeletedTopic{Name: req.Name, ID: req.ID}
	}
	fail := func(err error) {
		for i := range out {
			out[i].Err = err
		}
		done(out)
	}
	if c.closing(func() { fail(&Error{Kind: NotController}) }) {
		return
	}
	c.admin.run(func(t *ring.Task) {
		if !c.Active() {
			fail(&Error{Kind: NotController})
			return
		}
		if !c.o.DeleteTopics {
			fail(&Error{Kind: TopicDeletionDisabled})
			return
		}
		marked, err := c.markForDeletion(t, out)
		if err != nil {
			fail(storeError(err))
			return
		}
		c.waitForLoss(marked, call, func(missing map[string]error, failed error) {
			for i := range out {
				if why, late := missing[out[i].Name]; late && out[i].Err == nil {
					out[i].Err = waitError(why, failed)
				}
			}
			done(out)
		})
	})
}

// markForDeletion writes the markers; it gives the names of the topics that were there.
func (c *Controller) markForDeletion(t *ring.Task, out []DeletedTopic) (marked []string, err error) {
	var names []string
	for i := range out {
		d := &out[i]
		if d.Name == "" {
			x := c.image.TopicByID(d.ID)
			if x == nil {
				d.Err = &Error{Kind: UnknownTopicID}
				continue
			}
			d.Name = x.Name
		}
		names = append(names, d.Name)
	}
	o, err := c.look(t, names)
	if err != nil {
		return nil, err
	}
	var multis [][]metadata.Op
	var at []int
	for i := range out {
		if out[i].Err != nil {
			continue
		}
		if !o.has(out[i].Name) {
			out[i].Err = &Error{UnknownTopic, fmt.Sprintf("Topic `%s` to delete does not exist", out[i].Name)}
			continue
		}
		multis = append(multis, []metadata.Op{metadata.Create(metadata.DeleteTopicPath(out[i].Name), nil)})
		at = append(at, i)
	}
	for j, a := range c.store.doAll(t, multis) {
		if a.err != nil && !is(a.err, metadata.ErrNodeExists) {
			out[at[j]].Err = storeError(a.err)
			continue
		}
		marked = append(marked, out[at[j]].Name)
	}
	return marked, nil
}

func (c *Controller) waitForLoss(names []string, call Call, done func(map[string]error, error)) {
	if len(names) == 0 || call.Timeout <= 0 {
		c.waitForLeaders(names, Call{}, done)
		return
	}
	c.waits.until(c.image, names, call.Timeout, func(m *metadata.Image, name string) bool { return m.Topic(name) == nil }, done)
}

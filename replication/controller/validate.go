package controller

import (
	"fmt"
	"slices"
	"strings"

	"kring/metadata"
)

// plan is a topic that may be created.
type plan struct {
	assignment []metadata.Assignment
	config     metadata.Config
}

// existing answers what validation must know of other topics.
type existing interface {
	// has tells whether a topic of that name exists, in the picture or in the store.
	has(name string) bool
	// collidesWith names topics that differ from name in '.' and '_' only.
	collidesWith(name string) []string
}

// checkCreate validates a CreateTopic in Kafka's order and places its replicas. Errors are *Error.
func (c *Controller) checkCreate(req CreateTopic, shown bool, others existing) (p plan, err error) {
	if shown {
		return p, &Error{TopicExists, fmt.Sprintf("Topic '%s' already exists.", req.Name)}
	}
	var null []string
	for _, v := range req.Configs {
		if v.Value == nil {
			null = append(null, v.Name)
			continue
		}
		p.config = p.config.With(v.Name, *v.Value)
	}
	if len(null) > 0 {
		return p, &Error{InvalidConfig, "Null value not supported for topic configs: " + strings.Join(null, ",")}
	}
	if len(req.Assignment) > 0 {
		if req.Partitions != Unset || req.ReplicationFactor != Unset {
			return p, &Error{InvalidRequest, "Both numPartitions or replicationFactor and replicasAssignments were set. " +
				"Both cannot be used at the same time."}
		}
		for _, a := range req.Assignment {
			p.assignment = append(p.assignment, metadata.Assignment{Partition: a.Partition, Replicas: slices.Clone(a.Replicas)})
		}
	} else {
		partitions, replicas := req.Partitions, req.ReplicationFactor
		if partitions == Unset {
			partitions = c.o.NumPartitions
		}
		if replicas == Unset {
			replicas = c.o.ReplicationFactor
		}
		if p.assignment, err = assignment(c.image.Brokers(), partitions, replicas, -1, -1, c.rand); err != nil {
			return p, err
		}
	}
	if err := metadata.CheckTopicName(req.Name); err != nil {
		return p, &Error{InvalidTopicName, err.Error()}
	}
	if others.has(req.Name) {
		return p, &Error{TopicExists, fmt.Sprintf("Topic '%s' already exists.", req.Name)}
	}
	if names := others.collidesWith(req.Name); len(names) > 0 {
		return p, &Error{InvalidTopicName,
			fmt.Sprintf("Topic '%s' collides with existing topics: %s", req.Name, strings.Join(names, ", "))}
	}
	if err := checkAssignment(p.assignment); err != nil {
		return p, err
	}
	if c.o.Configs.CheckTopic != nil {
		if err := c.o.Configs.CheckTopic(p.config); err != nil {
			return p, &Error{InvalidConfig, err.Error()}
		}
	}
	return p, nil
}

// checkAssignment holds an assignment to the same number of different replicas everywhere and partitions from 0 without
// gaps, and puts it in order.
func checkAssignment(list []metadata.Assignment) error {
	for _, a := range list {
		if len(a.Replicas) != len(list[0].Replicas) {
			return &Error{InvalidReplicaAssignment, "All partitions should have the same number of replicas"}
		}
	}
	for _, a := range list {
		if len(a.Replicas) == 0 {
			return &Error{InvalidReplicaAssignment, fmt.Sprintf("No replicas are assigned to partition %d", a.Partition)}
		}
		for i, r := range a.Replicas {
			if r < 0 || slices.Contains(a.Replicas[:i], r) {
				return &Error{InvalidReplicaAssignment,
					fmt.Sprintf("Duplicate replica assignment found: partition %d on %v", a.Partition, a.Replicas)}
			}
		}
	}
	slices.SortStableFunc(list, func(a, b metadata.Assignment) int { return int(a.Partition) - int(b.Partition) })
	for i, a := range list {
		if a.Partition != int32(i) {
			return &Error{InvalidReplicaAssignment, "partitions should be a consecutive 0-based integer sequence"}
		}
	}
	return nil
}

// checkAddition validates a CreatePartitions in Kafka's order and gives the assignment of the new partitions.
func (c *Controller) checkAddition(req CreatePartitions, node metadata.TopicNode, exists bool) ([]metadata.Assignment, error) {
	if exists && len(node.Adding)+len(node.Removing) > 0 {
		return nil, &Error{ReassignmentInProgress, fmt.Sprintf("A partition reassignment is in progress for the topic '%s'.", req.Topic)}
	}
	if !exists || len(node.Partitions) == 0 {
		return nil, &Error{UnknownTopic, fmt.Sprintf("The topic '%s' does not exist.", req.Topic)}
	}
	have := int32(len(node.Partitions))
	switch {
	case req.Count < have:
		return nil, &Error{InvalidPartitions,
			fmt.Sprintf("Topic currently has %d partitions, which is higher than the requested %d.", have, req.Count)}
	case req.Count == have:
		return nil, &Error{InvalidPartitions, fmt.Sprintf("Topic already has %d partitions.", have)}
	}
	brokers := c.image.Brokers()
	first := slices.IndexFunc(node.Partitions, func(a metadata.Assignment) bool { return a.Partition == 0 })
	if first < 0 || len(node.Partitions[first].Replicas) == 0 {
		return nil, &Error{UnknownServerError, fmt.Sprintf("The assignment of topic '%s' lacks partition 0.", req.Topic)}
	}
	model := node.Partitions[first].Replicas
	if req.Assignment != nil {
		return checkManual(req.Assignment, have, req.Count-have, len(model), brokers)
	}
	start := max(0, slices.IndexFunc(brokers, func(b *metadata.Broker) bool { return b.ID >= model[0] }))
	return assignment(brokers, req.Count-have, int16(len(model)), int32(start), have, c.rand)
}

// checkManual validates the replicas asked for for n new partitions behind the first have ones.
func checkManual(lists [][]int32, have, n int32, factor int, brokers []*metadata.Broker) ([]metadata.Assignment, error) {
	known := func(id int32) bool {
		return slices.ContainsFunc(brokers, func(b *metadata.Broker) bool { return b.ID == id })
	}
	var unknown []string
	for _, list := range lists {
		for _, id := range list {
			if text := fmt.Sprint(id); !known(id) && !slices.Contains(unknown, text) {
				unknown = append(unknown, text)
			}
		}
	}
	if len(unknown) > 0 {
		return nil, &Error{InvalidReplicaAssignment, "Unknown broker(s) in replica assignment: " + strings.Join(unknown, ", ") + "."}
	}
	if int32(len(lists)) != n {
		return nil, &Error{InvalidReplicaAssignment,
			fmt.Sprintf("Increasing the number of partitions by %d but %d assignments provided.", n, len(lists))}
	}
	out := make([]metadata.Assignment, len(lists))
	for i, list := range lists {
		p := have + int32(i)
		if len(list) == 0 {
			return nil, &Error{InvalidReplicaAssignment, fmt.Sprintf("Cannot have replication factor of 0 for partition id %d.", p)}
		}
		for j, id := range list {
			if slices.Contains(list[:j], id) {
				return nil, &Error{InvalidReplicaAssignment,
					fmt.Sprintf("Duplicate brokers not allowed in replica assignment: %v for partition id %d.", list, p)}
			}
		}
		out[i] = metadata.Assignment{Partition: p, Replicas: slices.Clone(list)}
	}
	for _, a := range out {
		if len(a.Replicas) != factor {
			return nil, &Error{InvalidReplicaAssignment, fmt.Sprintf(
				"Inconsistent replication factor between partitions, partition 0 has %d while partition %d has replication factor %d.",
				factor, a.Partition, len(a.Replicas))}
		}
	}
	return out, nil
}

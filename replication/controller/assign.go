package controller

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"kring/metadata"
)

// assignment places the replicas of new partitions on brokers as Kafka does, racks or not: the first replicas go round the
// brokers, the others follow at a distance that grows with each round. start and shift are -1 for random ones; first is
// the number of the first partition. Errors are *Error.
func assignment(brokers []*metadata.Broker, partitions int32, replicas int16, start, first int32,
	r *rand.Rand) ([]metadata.Assignment, error) {
	racks := 0
	for _, b := range brokers {
		if b.Rack != "" {
			racks++
		}
	}
	switch {
	case partitions <= 0:
		return nil, &Error{InvalidPartitions, "Number of partitions must be larger than 0."}
	case replicas <= 0:
		return nil, &Error{InvalidReplicationFactor, "Replication factor must be larger than 0."}
	case int(replicas) > len(brokers):
		return nil, &Error{InvalidReplicationFactor,
			fmt.Sprintf("Replication factor: %d larger than available brokers: %d.", replicas, len(brokers))}
	case racks > 0 && racks < len(brokers):
		return nil, &Error{UnknownServerError, "Not all brokers have rack information for replica rack aware assignment."}
	}
	order := make([]*metadata.Broker, len(brokers))
	copy(order, brokers)
	if racks > 0 {
		order = alternateRacks(brokers)
	}
	n := int32(len(order))
	shift := start
	if start < 0 {
		start, shift = r.Int32N(n), r.Int32N(n)
	}
	p := max(first, 0)
	out := make([]metadata.Assignment, 0, partitions)
	for range partitions {
		if p > 0 && p%n == 0 {
			shift++
		}
		lead := (p + start) % n
		chosen := []int32{order[lead].ID}
		if racks == 0 {
			for j := int32(0); j < int32(replicas)-1; j++ {
				chosen = append(chosen, order[follower(lead, shift, j, n)].ID)
			}
		} else {
			chosen = otherRacks(order, chosen, lead, shift, int(replicas))
		}
		out = append(out, metadata.Assignment{Partition: p, Replicas: chosen})
		p++
	}
	return out, nil
}

// follower is the place of replica j+1 of a partition led from place lead.
func follower(lead, shift, j, n int32) int32 { return (lead + 1 + (shift+j)%(n-1)) % n }

// alternateRacks orders brokers so that neighbours are on different racks where that can be.
func alternateRacks(brokers []*metadata.Broker) []*metadata.Broker {
	byRack := map[string][]*metadata.Broker{}
	var racks []string
	for _, b := range brokers {
		if byRack[b.Rack] == nil {
			racks = append(racks, b.Rack)
		}
		byRack[b.Rack] = append(byRack[b.Rack], b)
	}
	slices.Sort(racks)
	for _, r := range racks {
		slices.SortFunc(byRack[r], func(a, b *metadata.Broker) int { return cmp.Compare(a.ID, b.ID) })
	}
	out := make([]*metadata.Broker, 0, len(brokers))
	for i := 0; len(out) < len(brokers); i++ {
		r := racks[i%len(racks)]
		if left := byRack[r]; len(left) > 0 {
			out = append(out, left[0])
			byRack[r] = left[1:]
		}
	}
	return out
}

// otherRacks adds replicas on racks that have none of this partition yet, and then on brokers that have none.
func otherRacks(order []*metadata.Broker, chosen []int32, lead, shift int32, replicas int) []int32 {
	n := int32(len(order))
	total := map[string]bool{}
	for _, b := range order {
		total[b.Rack] = true
	}
	racks, taken := map[string]bool{order[lead].Rack: true}, map[int32]bool{order[lead].ID: true}
	for k := int32(0); len(chosen) < replicas; k++ {
		b := order[rackFollower(lead, shift*int32(len(total)), k, n)]
		if (!racks[b.Rack] || len(racks) == len(total)) && (!taken[b.ID] || len(taken) == len(order)) {
			chosen = append(chosen, b.ID)
			racks[b.Rack], taken[b.ID] = true, true
		}
	}
	return chosen
}

func rackFollower(lead, shift, j, n int32) int32 {
	if n == 1 {
		return lead
	}
	return follower(lead, shift, j, n)
}

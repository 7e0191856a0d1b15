package controller

import (
	"slices"

	"kring/metadata"
)

// firstState is the state of a new partition: led by the first live replica, all live ones in sync; ok is false without any.
func firstState(replicas []int32, live func(int32) bool, epoch metadata.ControllerEpoch) (s metadata.StateNode, ok bool) {
	isr := keep(replicas, live)
	if len(isr) == 0 {
		return s, false
	}
	return metadata.StateNode{ControllerEpoch: epoch, Leader: isr[0], ISR: isr}, true
}

// electOffline chooses a leader for a partition whose leader is gone: the first assigned replica that is live and in sync,
// or if unclean is allowed the first live one, with a loss of data.
func electOffline(old metadata.StateNode, replicas []int32, live func(int32) bool, unclean bool,
	epoch metadata.ControllerEpoch) (metadata.StateNode, bool) {
	next := old
	next.ControllerEpoch = epoch
	next.LeaderEpoch++
	for _, r := range replicas {
		if live(r) && slices.Contains(old.ISR, r) {
			next.Leader, next.ISR = r, keep(old.ISR, live)
			return next, true
		}
	}
	if unclean {
		if alive := keep(replicas, live); len(alive) > 0 {
			next.Leader, next.ISR, next.Recovering = alive[0], alive[:1:1], true
			return next, true
		}
	}
	return old, false
}

// electPreferred has the first assigned replica lead, if it is live and in sync.
func electPreferred(old metadata.StateNode, replicas []int32, live func(int32) bool,
	epoch metadata.ControllerEpoch) (metadata.StateNode, bool) {
	if first := replicas[0]; live(first) && slices.Contains(old.ISR, first) {
		next := old
		next.ControllerEpoch, next.Leader = epoch, first
		next.LeaderEpoch++
		return next, true
	}
	return old, false
}

// withoutReplica is the state once a replica is offline: out of the ISR unless it is the last one in it, and not the leader.
// changed is false if it was not in the ISR.
func withoutReplica(old metadata.StateNode, replica int32, epoch metadata.ControllerEpoch) (next metadata.StateNode, changed bool) {
	if !slices.Contains(old.ISR, replica) {
		return old, false
	}
	next = old
	next.ControllerEpoch = epoch
	next.LeaderEpoch++
	if next.Leader == replica {
		next.Leader = metadata.NoLeader
	}
	if len(old.ISR) > 1 {
		next.ISR = keep(old.ISR, func(r int32) bool { return r != replica })
	}
	return next, true
}

func keep(ids []int32, ok func(int32) bool) []int32 {
	out := make([]int32, 0, len(ids))
	for _, id := range ids {
		if ok(id) {
			out = append(out, id)
		}
	}
	return out
}

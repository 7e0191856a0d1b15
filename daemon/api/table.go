package api

import (
	"kring/daemon/server"
	"kring/wire"
)

// row is one API. Its handler is called on the connection's loop and answers r exactly once, now or later.
type row struct {
	key, min, max int16
	handle        func(c *Context, r *server.Request)
	// most is the largest body taken, 0 for socket.request.max.bytes: a decoded message may take fifty times its bytes, so
	// only what is read in place may be large.
	most int
	// weight is how many bytes of memory one byte of the body may cost while the request is under way.
	weight int64
}

// rows is every API served, by key; what is not here is not advertised and closes the connection. The lowest versions are
// those of KIP-896, the highest those of Kafka 3.9; between brokers, all that a Kafka 3.9 may send.
func rows() []row {
	return []row{
		{wire.Produce, 3, 11, produce, 0, 1},
		{wire.Fetch, 4, 17, fetch, 8 * mib, 4},
		{wire.ListOffsets, 1, 9, listOffsets, 2 * mib, 16},
		{wire.Metadata, 0, 12, metadataOf, 2 * mib, 16},
		{wire.OffsetCommit, 2, 9, offsetCommit, 2 * mib, 32},
		{wire.OffsetFetch, 1, 9, offsetFetch, 2 * mib, 64},
		{wire.FindCoordinator, 0, 6, findCoordinator, 512 << 10, 64},
		{wire.JoinGroup, 0, 9, joinGroup, 2 * mib, 40},
		{wire.Heartbeat, 0, 4, heartbeat, 64 << 10, 2},
		{wire.LeaveGroup, 0, 5, leaveGroup, 2 * mib, 32},
		{wire.SyncGroup, 0, 5, syncGroup, 8 * mib, 40},
		{wire.DescribeGroups, 0, 5, describeGroups, 512 << 10, 64},
		{wire.ListGroups, 0, 5, listGroups, 64 << 10, 32},
		{wire.SaslHandshake, 0, 1, saslHandshake, 64 << 10, 1},
		{wire.ApiVersions, 0, 4, apiVersions, 64 << 10, 1},
		{wire.CreateTopics, 2, 7, createTopics, 2 * mib, 32},
		{wire.DeleteTopics, 1, 6, deleteTopics, 2 * mib, 16},
		{wire.DeleteRecords, 0, 2, deleteRecords, 2 * mib, 16},
		{wire.InitProducerID, 0, 5, initProducerID, 64 << 10, 4},
		{wire.OffsetForLeaderEpoch, 2, 4, offsetForLeaderEpoch, 2 * mib, 16},
		{wire.WriteTxnMarkers, 0, 1, writeTxnMarkers, 2 * mib, 128},
		{wire.DescribeACLs, 1, 3, describeACLs, 64 << 10, 1},
		{wire.CreateACLs, 1, 3, createACLs, 2 * mib, 32},
		{wire.DeleteACLs, 1, 3, deleteACLs, 2 * mib, 32},
		{wire.DescribeConfigs, 1, 4, describeConfigs, 2 * mib, 64},
		{wire.AlterConfigs, 0, 2, alterConfigs, 2 * mib, 32},
		{wire.DescribeLogDirs, 1, 4, describeLogDirs, 2 * mib, 32},
		{wire.SaslAuthenticate, 0, 2, saslAuthenticate, 64 << 10, 1},
		{wire.CreatePartitions, 0, 3, createPartitions, 2 * mib, 32},
		{wire.CreateDelegationToken, 1, 3, createDelegationToken, 64 << 10, 16},
		{wire.RenewDelegationToken, 1, 2, renewDelegationToken, 64 << 10, 1},
		{wire.ExpireDelegationToken, 1, 2, expireDelegationToken, 64 << 10, 1},
		{wire.DescribeDelegationToken, 1, 3, describeDelegationToken, 64 << 10, 16},
		{wire.DeleteGroups, 0, 2, deleteGroups, 512 << 10, 64},
		{wire.ElectLeaders, 0, 2, electLeaders, 2 * mib, 32},
		{wire.IncrementalAlterConfigs, 0, 1, incrementalAlterConfigs, 2 * mib, 32},
		{wire.AlterPartitionReassignments, 0, 0, alterReassignments, 2 * mib, 64},
		{wire.ListPartitionReassignments, 0, 0, listReassignments, 2 * mib, 16},
		{wire.OffsetDelete, 0, 0, offsetDelete, 2 * mib, 32},
		{wire.DescribeClientQuotas, 0, 1, describeClientQuotas, 64 << 10, 32},
		{wire.AlterClientQuotas, 0, 1, alterClientQuotas, 2 * mib, 64},
		{wire.DescribeUserScramCredentials, 0, 0, describeScramCredentials, 64 << 10, 64},
		{wire.UpdateFeatures, 0, 1, updateFeatures, 64 << 10, 64},
		{wire.DescribeCluster, 0, 1, describeCluster, 64 << 10, 1},
		{wire.DescribeProducers, 0, 0, describeProducers, 2 * mib, 32},
		{wire.ListTransactions, 0, 1, listTransactions, 64 << 10, 16},
	}
}

const mib = 1 << 20

// apis is rows by key.
type apis [wire.KeyMax + 1]*row

var table = byKey(rows())

func byKey(all []row) *apis {
	t := new(apis)
	for i := range all {
		t[all[i].key] = &all[i]
	}
	return t
}

// Dispatch is what a server calls for each request of this loop.
func (c *Context) Dispatch(r *server.Request) {
	row := c.table[r.Key]
	switch {
	case row == nil:
		r.Close(server.BadKey)
	case r.Version < row.min || r.Version > row.max:
		if r.Key == wire.ApiVersions {
			unsupportedVersion(c, r)
			return
		}
		r.Close(server.BadVersion)
	case row.most > 0 && len(r.Body) > row.most:
		r.Close(server.BadBody)
	default:
		if row.weight > 1 {
			r.Charge(row.weight * int64(len(r.Body)))
		}
		row.handle(c, r)
	}
}

package api

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/daemon/server"
	"kring/wire"
)

const transactionTopic = "__transaction_state"

// transactionStates are those a filter may name.
var transactionStates = []string{"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead",
	"PrepareEpochFence"}

// listTransactions lists the transactions coordinated here (KIP-664). None is, and without a topic that could hold any that is all
// there is to say; of what may lie in the topic Kafka's own tool is told UNSUPPORTED_VERSION, since "coordinator not available" it takes
// for a broker that is about to stop.
func listTransactions(c *Context, r *server.Request) {
	m := kmsg.NewPtrListTransactionsRequest()
	if !decode(r, m) {
		return
	}
	resp := kmsg.NewPtrListTransactionsResponse()
	if c.Image().Topic(transactionTopic) != nil {
		resp.ErrorCode = int16(wire.UnsupportedVersion)
	}
	for _, s := range m.StateFilters {
		if !slices.Contains(transactionStates, s) && !slices.Contains(resp.UnknownStateFilters, s) {
			resp.UnknownStateFilters = append(resp.UnknownStateFilters, s)
		}
	}
	r.ReplyMessage(resp)
}

package broker

import (
	"fmt"
	"strings"

	"kring/ring"
	"kring/segment"
)

// openTxns are transactions that nothing here will end: there is no coordinator yet.
type openTxns struct {
	count    int
	examples []string
	abort    string // what ends the first
}

// openTxnsNamed is how many are named.
const openTxnsNamed = 10

func (o *openTxns) add(p segment.Partition, producer int64, first segment.Offset) {
	o.count++
	if len(o.examples) == openTxnsNamed {
		return
	}
	if o.abort == "" {
		o.abort = fmt.Sprintf("kafka-transactions.sh abort --topic %s --partition %d --start-offset %d", p.Topic, p.Index, first)
	}
	o.examples = append(o.examples, fmt.Sprintf("%s: producer %d from offset %d", p, producer, first))
}

// tellOpenTxns warns of transactions that were open when the logs were left: they may be another broker's, whose coordinator is not here.
func (b *Broker) tellOpenTxns(t *ring.Task, work [][]opening) {
	found := make([]openTxns, len(b.shards))
	b.each(t, func(s *shard, done func()) {
		for i := range work[s.id] {
			if r := s.byName[work[s.id][i].at]; r != nil {
				r.log.OpenTxns(func(producer int64, first segment.Offset) { found[s.id].add(r.Partition, producer, first) })
			}
		}
		done()
	})
	var all openTxns
	for _, f := range found {
		all.count += f.count
		all.examples = append(all.examples, f.examples...)
		if all.abort == "" {
			all.abort = f.abort
		}
	}
	if all.count == 0 {
		return
	}
	b.log.Warn("transactions are open and nothing here ends them: read_committed readers stop there", "transactions", all.count,
		"open", strings.Join(all.examples[:min(len(all.examples), openTxnsNamed)], "; "), "the.first.ends.by", all.abort)
}

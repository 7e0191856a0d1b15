package swap

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// ledger is a topic that transactions write to.
const ledger = "ledger"

// transactions are Kafka's alone: kring keeps and serves what they wrote.
type transactions struct {
	id        string
	committed []string
	all       []string
}

// work aborts a transaction, commits one and leaves one open. The next round's ends that one.
func (x *transactions) work(t *testing.T, addr string, round int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.TransactionalID(x.id), kgo.TransactionTimeout(10*time.Minute), kgo.DefaultProduceTopic(ledger))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for _, how := range []string{"aborted", "committed", "open"} {
		if err := cl.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			value := fmt.Sprintf("%s %d.%d", how, round, i)
			if err := cl.ProduceSync(ctx, kgo.StringRecord(value)).FirstErr(); err != nil {
				t.Fatal(err)
			}
			x.all = append(x.all, value)
			if how == "committed" {
				x.committed = append(x.committed, value)
			}
		}
		if how != "open" {
			if err := cl.EndTransaction(ctx, kgo.TransactionEndTry(how == "committed")); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// check reads the ledger with and without regard to transactions.
func (x *transactions) check(t *testing.T, h *house, kafka bool, when string) {
	t.Helper()
	cl, adm := h.admin(t)
	defer cl.Close()
	ends := awaitEnds(t, adm, ledger)
	end, _ := ends.Lookup(ledger, 0)
	stable := stableEnd(t, adm)
	if open := end.Offset - stable; open != 5 {
		t.Errorf("%s: the last stable offset is %d before the end, not the 5 of the open transaction", when, open)
	}
	all := values(h.read(t, ledger, 0, end.Offset))
	committed := values(h.read(t, ledger, 0, stable, kgo.FetchIsolationLevel(kgo.ReadCommitted())))
	if !slices.Equal(all, x.all) {
		t.Errorf("%s: the ledger holds\n%q, not\n%q", when, all, x.all)
	}
	if !slices.Equal(committed, x.committed) {
		t.Errorf("%s: committed is\n%q, not\n%q", when, committed, x.committed)
	}
}

func stableEnd(t *testing.T, adm *kadm.Client) int64 {
	t.Helper()
	ends, err := adm.ListCommittedOffsets(context.Background(), ledger)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	o, _ := ends.Lookup(ledger, 0)
	return o.Offset
}

func values(records []*kgo.Record) (out []string) {
	for _, r := range records {
		if !r.Attrs.IsControl() {
			out = append(out, string(r.Value))
		}
	}
	return out
}

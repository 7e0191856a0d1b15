package broker

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/wire"
)

// TestTransactionsNobodyEndsAreTold: a start on logs with open transactions names some of them, and what ends one; once it is ended, the
// next start says nothing.
func TestTransactionsNobodyEndsAreTold(t *testing.T) {
	for _, loops := range []int{1, 2, 4} {
		s := newSim(t, loops, 5)
		s.said = &strings.Builder{}
		s.start("transaction.partition.verification.enable=false")
		c := connect(t, s)
		c.createTopic("newt", 12)
		for p := range int32(12) {
			c.produce("newt", p, -1, words("before"))
			if code := c.produceIn("x", "newt", p, transactional(4001, 0, 0)); code != wire.None {
				t.Fatal(code)
			}
		}
		c.close()
		s.stop()
		s.said.Reset()
		s.start("transaction.partition.verification.enable=false")
		said := s.said.String()
		if !strings.Contains(said, "nothing here ends them: read_committed readers stop there") || !strings.Contains(said, "transactions=12 ") ||
			strings.Count(said, ": producer 4001 from offset 1") != openTxnsNamed ||
			!strings.Contains(said, "kafka-transactions.sh abort --topic newt --partition ") || !strings.Contains(said, " --start-offset 1") {
			t.Fatalf("%d loops: %s", loops, said)
		}
		c = connect(t, s)
		for p := range int32(12) {
			if got := c.mark(1, end(4001, false, 3, "newt", p)); fmt.Sprint(got) != fmt.Sprintf("[4001 newt-%d 0]", p) {
				t.Fatal(got)
			}
		}
		c.close()
		s.stop()
		s.said.Reset()
		s.start()
		if said := s.said.String(); strings.Contains(said, "transactions are open") {
			t.Errorf("%d loops: %s", loops, said)
		}
		s.stop()
	}
}

// TestRefusedTransactionsAreToldOnce: a transactional producer is refused with a code that names another cause, so the log says why, once
// for each id and not without bound.
func TestRefusedTransactionsAreToldOnce(t *testing.T) {
	s := newSim(t, 2, 5)
	s.said = &strings.Builder{}
	s.start()
	for range 2 {
		c := connect(t, s)
		for _, id := range []string{"t9", "t8"} {
			for _, version := range []int16{3, 4} {
				m := kmsg.NewPtrFindCoordinatorRequest()
				m.CoordinatorType, m.CoordinatorKey, m.CoordinatorKeys = 1, id, []string{id}
				a := ask[*kmsg.FindCoordinatorResponse](c, m, version)
				code, text := a.ErrorCode, a.ErrorMessage
				if version >= 4 {
					code, text = a.Coordinators[0].ErrorCode, a.Coordinators[0].ErrorMessage
				}
				if wire.Code(code) != wire.TransactionalIDAuthorizationFailed || text == nil || *text != "transactions are not supported yet" {
					t.Errorf("version %d: %d %v", version, code, text)
				}
			}
			m := kmsg.NewPtrInitProducerIDRequest()
			m.TransactionalID, m.TransactionTimeoutMillis, m.ProducerID, m.ProducerEpoch = &id, 1000, -1, -1
			if a := ask[*kmsg.InitProducerIDResponse](c, m, 4); wire.Code(a.ErrorCode) != wire.TransactionalIDAuthorizationFailed {
				t.Error(a.ErrorCode)
			}
		}
		c.close()
	}
	for _, id := range []string{"t8", "t9"} {
		if n := strings.Count(s.said.String(), "transactional id "+id+" refused: transactions are not supported yet"); n != 1 {
			t.Errorf("%s is told %d times:\n%s", id, n, s.said)
		}
	}
	c := connect(t, s)
	for i := range 100 {
		m := kmsg.NewPtrFindCoordinatorRequest()
		m.CoordinatorType, m.CoordinatorKeys = 1, []string{fmt.Sprint("made-up-", i)}
		ask[*kmsg.FindCoordinatorResponse](c, m, 4)
	}
	c.close()
	if n := strings.Count(s.said.String(), " refused: "); n < 3 || n > 30 {
		t.Errorf("%d lines of 102 ids", n)
	}
	s.stop()
}

// TestTransactionStateIsNotListedWithoutACoordinator: with a topic of transactions taken over, an empty list would be a lie.
func TestTransactionStateIsNotListedWithoutACoordinator(t *testing.T) {
	s := newSim(t, 2, 5)
	s.said = &strings.Builder{}
	s.start()
	c := connect(t, s)
	list := func() wire.Code {
		return wire.Code(ask[*kmsg.ListTransactionsResponse](c, kmsg.NewPtrListTransactionsRequest(), 1).ErrorCode)
	}
	if code := list(); code != wire.None {
		t.Error(code)
	}
	c.createTopic("__transaction_state", 2, "compression.type=gzip")
	if code := list(); code != wire.UnsupportedVersion {
		t.Error(code)
	}
	if said := s.said.String(); strings.Contains(said, "does not act yet") {
		t.Errorf("settings nobody chose are warned about: %s", said)
	}
	c.createTopic("idle", 1, "compression.type=gzip")
	if said := s.said.String(); !strings.Contains(said, "does not act yet; told once\" key=compression.type topic=idle") {
		t.Errorf("settings somebody chose are not warned about: %s", said)
	}
	c.close()
	s.stop()
}

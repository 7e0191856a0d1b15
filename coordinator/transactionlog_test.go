package coordinator

import (
	"errors"
	"os"
	"regexp"
	"strconv"
	"testing"

	"kring/wire/batch"
)

var dumpedTransaction = regexp.MustCompile(`(?m)^\| offset: (\d+) .*?headerKeys: \[\] key: transaction_metadata::transactionalId=(.*) payload: (.*)$`)

// TestGoldenTransactions prints what Kafka's coordinator wrote, and what was made to go further, as Kafka's tool does.
func TestGoldenTransactions(t *testing.T) {
	for _, name := range []string{"transactions", "transactions-made"} {
		text, err := os.ReadFile("testdata/golden/" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		printed := map[int64][2]string{}
		for _, m := range dumpedTransaction.FindAllStringSubmatch(string(text), -1) {
			offset, _ := strconv.ParseInt(m[1], 10, 64)
			printed[offset] = [2]string{m[2], m[3]}
		}
		count := 0
		golden(t, name+".log", func(_ batch.Header, r *batch.Record) {
			want, ok := printed[r.Offset]
			if !ok {
				t.Fatalf("%s: no record at offset %d in Kafka's dump", name, r.Offset)
			}
			count++
			id, err := DecodeTransactionKey(r.Key)
			payload := "<DELETE>"
			if err == nil && r.Value != nil {
				var v TransactionValue
				v, err = DecodeTransaction(r.Value)
				payload = v.String()
			}
			if err != nil || id != want[0] || payload != want[1] {
				t.Errorf("%s offset %d: %v\n%s %s\nKafka:\n%s %s", name, r.Offset, err, id, payload, want[0], want[1])
			}
		})
		if count < 40 || count != len(printed) {
			t.Errorf("%s: %d records, Kafka has %d", name, count, len(printed))
		}
	}
}

func TestTransactionRecordsThatAreNone(t *testing.T) {
	for _, key := range []string{"", "\x00", "\x00\x00\x00", "\x00\x00\x00\x05abcd", "\x00\x00\xff\xff"} {
		if _, err := DecodeTransactionKey([]byte(key)); !errors.Is(err, ErrMalformed) {
			t.Errorf("key %q: %v", key, err)
		}
	}
	if _, err := DecodeTransactionKey([]byte("\x00\x01\x00\x01a")); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("a key of version 1: %v", err)
	}
	var whole []byte
	golden(t, "transactions.log", func(_ batch.Header, r *batch.Record) { whole = r.Value })
	for n := range whole {
		if _, err := DecodeTransaction(whole[:n]); !errors.Is(err, ErrMalformed) {
			t.Errorf("%d of %d bytes of a value: %v", n, len(whole), err)
		}
	}
	for at, b := range map[int]byte{1: 2, 16: byte(len(transactionStates)), 17: 0x7f} {
		bad := append([]byte{}, whole...)
		bad[at] = b
		if _, err := DecodeTransaction(bad); !errors.Is(err, ErrMalformed) {
			t.Errorf("byte %d is %d: %v", at, b, err)
		}
	}
}

func FuzzTransactionRecord(f *testing.F) {
	for _, name := range []string{"transactions.log", "transactions-made.log"} {
		golden(f, name, func(_ batch.Header, r *batch.Record) { f.Add(r.Key, r.Value) })
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		_, _ = DecodeTransactionKey(key)
		if v, err := DecodeTransaction(value); err == nil {
			_ = v.String()
		}
	})
}

package main

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"kring/coordinator"
	"kring/segment"
)

// decoderNames are the ways to read a key or value; integer and long are four and eight bytes, as Kafka's decoders of these names.
const decoderNames = "string, integer, long, hex or base64"

// decoders sets how keys and values are read, where the flags say so.
func decoders(o *segment.DumpOptions, keys, values string) error {
	for _, f := range []struct {
		flag, name string
		to         *func([]byte) string
	}{{"--key-decoder", keys, &o.Key}, {"--value-decoder", values, &o.Value}} {
		switch f.name {
		case "":
			continue
		case "string":
		case "integer":
			*f.to = bigEndian(4)
		case "long":
			*f.to = bigEndian(8)
		case "hex":
			*f.to = hex.EncodeToString
		case "base64":
			*f.to = base64.StdEncoding.EncodeToString
		default:
			return wrong("%s is %q; allowed are %s", f.flag, f.name, decoderNames)
		}
		o.PrintDataLog = true
		o.Parser = func(string) segment.Parser { return nil }
	}
	return nil
}

// bigEndian reads a big-endian number of so many bytes; what has another length is shown as it is.
func bigEndian(bytes int) func([]byte) string {
	return func(b []byte) string {
		switch {
		case len(b) != bytes:
			return fmt.Sprintf("(%d bytes, not %d: %x)", len(b), bytes, b)
		case bytes == 4:
			return strconv.Itoa(int(int32(binary.BigEndian.Uint32(b))))
		}
		return strconv.FormatInt(int64(binary.BigEndian.Uint64(b)), 10)
	}
}

// parseTransactions prints a record of __transaction_state as kafka-dump-log --transaction-log-decoder does; what is none, it names, where
// Kafka's tool ends.
func parseTransactions(offset int64, key, value []byte) (string, string) {
	id, err := coordinator.DecodeTransactionKey(key)
	if errors.Is(err, coordinator.ErrUnknownKey) {
		return fmt.Sprintf("Unknown record type %d at offset %d, skipping.", int16(binary.BigEndian.Uint16(key)), offset), ""
	}
	payload := "<DELETE>"
	if err == nil && value != nil {
		var v coordinator.TransactionValue
		v, err = coordinator.DecodeTransaction(value)
		payload = v.String()
	}
	if err != nil {
		return fmt.Sprintf("Error at offset %d, skipping. %v", offset, err), ""
	}
	return "transaction_metadata::transactionalId=" + id, payload
}

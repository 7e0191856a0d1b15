package main

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"kring/coordinator"
	"kring/segment"
)

// parserOf is what reads the records of a file, by the partition it belongs to.
func parserOf(file string) segment.Parser {
	dir, err := filepath.Abs(filepath.Dir(file))
	switch name := filepath.Base(dir); {
	case err != nil:
	case strings.HasPrefix(name, "__consumer_offsets-"):
		return parseOffsets
	case strings.HasPrefix(name, "__transaction_state-"):
		return parseTransactions
	}
	return nil
}

// laterValue is the value of a record of KIP-848's groups, which are not taken apart.
func laterValue(value []byte) string {
	if value == nil {
		return "<DELETE>"
	}
	if len(value) < 2 {
		return base64.StdEncoding.EncodeToString(value)
	}
	return fmt.Sprintf(`{"version":"%d","data":"%s"}`, int16(binary.BigEndian.Uint16(value)), base64.StdEncoding.EncodeToString(value[2:]))
}

// parseOffsets prints a record of __consumer_offsets as kafka-dump-log --offsets-decoder does.
func parseOffsets(offset int64, key, value []byte) (string, string) {
	k, err := coordinator.DecodeKey(key)
	if errors.Is(err, coordinator.ErrUnknownKey) {
		if text, known := coordinator.LaterKey(key); known {
			return text, laterValue(value)
		}
		return fmt.Sprintf("Unknown record type %d at offset %d, skipping.", k.Version, offset), ""
	}
	payload := "<DELETE>"
	if err == nil && value != nil {
		if k.Kind == coordinator.OffsetKey {
			var v coordinator.OffsetValue
			v, err = coordinator.DecodeOffset(value)
			payload = v.String()
		} else {
			var v coordinator.GroupValue
			v, err = coordinator.DecodeGroup(value)
			payload = v.String()
		}
	}
	if err != nil {
		return fmt.Sprintf("Error at offset %d, skipping. %v", offset, err), ""
	}
	return k.String(), payload
}

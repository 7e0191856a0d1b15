package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
)

// printer writes records for people or, as JSON, for programs.
type printer struct {
	out       *bufio.Writer
	json      bool
	keys      string
	offsets   bool
	headers   bool
	delimiter string
}

func (p *printer) print(r *kgo.Record) error {
	if p.json {
		line, err := json.Marshal(jsonRecord(r))
		if err != nil {
			return err
		}
		_, err = p.out.Write(append(line, '\n'))
		return err
	}
	if p.offsets {
		fmt.Fprintf(p.out, "%d %d %s  ", r.Partition, r.Offset, r.Timestamp.UTC().Format(time.RFC3339Nano))
	}
	if p.headers {
		for _, h := range r.Headers {
			fmt.Fprintf(p.out, "%s=%s ", h.Key, h.Value)
		}
	}
	if p.keys != "" {
		p.out.Write(r.Key)
		p.out.WriteString(p.keys)
	}
	p.out.Write(r.Value)
	_, err := p.out.WriteString(p.delimiter)
	return err
}

// jsonRecord is a record as --json shows it: text as a string, other bytes as base64 in a field whose name says so, null if absent.
func jsonRecord(r *kgo.Record) map[string]any {
	kind := "CreateTime"
	if r.Attrs.TimestampType() == 1 {
		kind = "LogAppendTime"
	}
	m := map[string]any{"topic": r.Topic, "partition": r.Partition, "offset": r.Offset, "leaderEpoch": r.LeaderEpoch,
		"timestamp": r.Timestamp.UnixMilli(), "timestampType": kind}
	put(m, "key", r.Key)
	put(m, "value", r.Value)
	headers := make([]map[string]any, 0, len(r.Headers))
	for _, h := range r.Headers {
		one := map[string]any{"key": h.Key}
		put(one, "value", h.Value)
		headers = append(headers, one)
	}
	if len(headers) > 0 {
		m["headers"] = headers
	}
	return m
}

func put(m map[string]any, name string, b []byte) {
	switch {
	case b == nil:
		m[name] = nil
	case utf8.Valid(b):
		m[name] = string(b)
	default:
		m[name+"Base64"] = b
	}
}

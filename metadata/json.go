package metadata

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// object is a JSON object with its keys in order; a key that comes twice counts as the last one.
type object []member

type member struct {
	key   string
	value any // object, []any, string, json.Number, bool, nil
}

// maxDepth is more than any of Kafka's znodes has.
const maxDepth = 16

// parseObject reads one JSON object and nothing behind it.
func parseObject(b []byte) (object, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	v, err := parseValue(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("something follows the JSON at byte %d", d.InputOffset())
	}
	o, ok := v.(object)
	if !ok {
		return nil, fmt.Errorf("JSON, but no object")
	}
	return o, nil
}

func parseValue(d *json.Decoder, depth int) (any, error) {
	tok, err := d.Token()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("no JSON at byte %d: %w", d.InputOffset(), err)
	}
	delim, ok := tok.(json.Delim)
	if !ok {
		return tok, nil
	}
	if depth == maxDepth {
		return nil, fmt.Errorf("JSON nested more than %d deep at byte %d", maxDepth, d.InputOffset())
	}
	if delim == '[' {
		list := []any{}
		for d.More() {
			v, err := parseValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, endValue(d)
	}
	o := object{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("no JSON at byte %d: %w", d.InputOffset(), err)
		}
		v, err := parseValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		o = append(o, member{key.(string), v})
	}
	return o, endValue(d)
}

func endValue(d *json.Decoder) error {
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("no JSON at byte %d: %w", d.InputOffset(), err)
	}
	return nil
}

// fields reads members and keeps the first thing that was wrong.
type fields struct {
	o   object
	err error
}

func (f *fields) fail(key, want string, got any) {
	if f.err == nil {
		f.err = fmt.Errorf("%q should be %s, is %s", key, want, show(got))
	}
}

func show(v any) string {
	s := fmt.Sprintf("%v", v)
	if v == nil {
		s = "null"
	}
	if len(s) > 40 {
		s = strings.ToValidUTF8(s[:40], "") + "..."
	}
	return s
}

func (f *fields) get(key string) (any, bool) {
	for i := len(f.o) - 1; i >= 0; i-- {
		if f.o[i].key == key {
			return f.o[i].value, true
		}
	}
	return nil, false
}

func (f *fields) has(key string) bool {
	v, ok := f.get(key)
	return ok && v != nil
}

// number reads a whole number within bounds, be it written as a number or as text.
func (f *fields) number(key string, low, high int64) int64 {
	v, _ := f.get(key)
	n, ok := toNumber(v)
	if !ok || n < low || n > high {
		f.fail(key, fmt.Sprintf("a whole number from %d to %d", low, high), v)
		return 0
	}
	return n
}

func toNumber(v any) (int64, bool) {
	var s string
	switch v := v.(type) {
	case json.Number:
		s = string(v)
	case string:
		s = v
	default:
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

func (f *fields) int32(key string) int32 { return int32(f.number(key, -1<<31, 1<<31-1)) }

func (f *fields) int64(key string) int64 { return f.number(key, -1<<63, 1<<63-1) }

func (f *fields) version(low, high int64) int { return int(f.number("version", low, high)) }

func (f *fields) str(key string) string {
	v, _ := f.get(key)
	s, ok := v.(string)
	if !ok {
		f.fail(key, "a string", v)
	}
	return s
}

func (f *fields) list(key string) []any {
	v, _ := f.get(key)
	l, ok := v.([]any)
	if !ok {
		f.fail(key, "a list", v)
	}
	return l
}

func (f *fields) object(key string) object {
	v, _ := f.get(key)
	o, ok := v.(object)
	if !ok {
		f.fail(key, "an object", v)
	}
	return o
}

func (f *fields) strings(key string) []string {
	list := f.list(key)
	out := make([]string, len(list))
	for i, v := range list {
		s, ok := v.(string)
		if !ok {
			f.fail(key, "a list of strings", v)
		}
		out[i] = s
	}
	return out
}

func (f *fields) ids(key string) []int32 {
	v, _ := f.get(key)
	return f.toIDs(key, v)
}

func (f *fields) toIDs(key string, v any) []int32 {
	list, ok := v.([]any)
	if !ok {
		f.fail(key, "a list of broker ids", v)
	}
	out := make([]int32, len(list))
	for i, v := range list {
		n, ok := toNumber(v)
		if _, text := v.(string); text || !ok || n < 0 || n > 1<<31-1 {
			f.fail(key, "a list of broker ids", v)
		}
		out[i] = int32(n)
	}
	return out
}

// The writing side: Kafka's JSON has no spaces, and its strings are escaped as Jackson does.

func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				b = append(b, "\uFFFD"...)
			} else {
				b = append(b, s[i:i+n]...)
			}
			i += n
			continue
		}
		i++
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\b':
			b = append(b, `\b`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\f':
			b = append(b, `\f`...)
		case c == '\r':
			b = append(b, `\r`...)
		case c < 0x20:
			b = fmt.Appendf(b, `\u%04X`, c)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

func appendIDs(b []byte, ids []int32) []byte {
	b = append(b, '[')
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(id), 10)
	}
	return append(b, ']')
}

func appendStrings(b []byte, list []string) []byte {
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, s)
	}
	return append(b, ']')
}

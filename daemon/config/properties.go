package config

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
)

// Property is one key and value of a properties file, and the line it begins on.
type Property struct {
	Key, Value string
	Line       int
}

// ParseProperties reads Java properties (java.util.Properties.load): comments by # or !, = or : or blanks between key and value,
// continuation by an odd number of backslashes at the end, the escapes \t \n \r \f \uXXXX and \ before anything else, bytes as
// ISO 8859-1. It keeps order and repetitions. The only malformed thing is \u without four hexadecimal digits.
func ParseProperties(text []byte) ([]Property, error) {
	var all []Property
	lines := lineReader{rest: text}
	for {
		line, at, ok := lines.next()
		if !ok {
			return all, nil
		}
		key, value := split(line)
		k, err := unescape(key)
		if err == nil {
			value, err = unescape(value)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", at, err)
		}
		all = append(all, Property{k, value, at})
	}
}

// lineReader gives logical lines: blanks at the front gone, comments and empty lines skipped, continued lines joined.
type lineReader struct {
	rest []byte
	line int
}

func (r *lineReader) natural() (string, bool) {
	if len(r.rest) == 0 {
		return "", false
	}
	r.line++
	end := bytes.IndexAny(r.rest, "\r\n")
	if end < 0 {
		line := string(r.rest)
		r.rest = nil
		return line, true
	}
	line := string(r.rest[:end])
	if r.rest[end] == '\r' && end+1 < len(r.rest) && r.rest[end+1] == '\n' {
		end++
	}
	r.rest = r.rest[end+1:]
	return line, true
}

func (r *lineReader) next() (line string, at int, ok bool) {
	for {
		line, ok = r.natural()
		if !ok {
			return "", 0, false
		}
		line = strings.TrimLeft(line, " \t\f")
		if line != "" && line[0] != '#' && line[0] != '!' {
			break
		}
	}
	at = r.line
	if !continued(line) {
		return line, at, true
	}
	var b strings.Builder
	for continued(line) {
		b.WriteString(line[:len(line)-1])
		if line, ok = r.natural(); !ok {
			line = ""
		}
		line = strings.TrimLeft(line, " \t\f")
	}
	b.WriteString(line)
	return b.String(), at, true
}

// continued reports an odd number of backslashes at the end.
func continued(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}

// split cuts a logical line behind its key: at the first =, : or blank that is not escaped.
func split(line string) (key, value string) {
	i := 0
	for i < len(line) && !strings.ContainsRune("=: \t\f", rune(line[i])) {
		if line[i] == '\\' {
			i++
		}
		i++
	}
	i = min(i, len(line))
	key, value = line[:i], strings.TrimLeft(line[i:], " \t\f")
	if value != "" && (value[0] == '=' || value[0] == ':') {
		value = strings.TrimLeft(value[1:], " \t\f")
	}
	return key, value
}

func unescape(s string) (string, error) {
	if strings.IndexByte(s, '\\') < 0 && isASCII(s) {
		return s, nil
	}
	units := make([]uint16, 0, len(s)) // Java strings are UTF-16: two \u may make one character
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			units = append(units, uint16(s[i]))
			continue
		}
		i++
		if i == len(s) {
			break
		}
		switch s[i] {
		case 'u':
			if len(s)-i < 5 || strings.Trim(s[i+1:i+5], "0123456789abcdefABCDEF") != "" {
				return "", fmt.Errorf(`\u without four hexadecimal digits`)
			}
			u, _ := strconv.ParseUint(s[i+1:i+5], 16, 16)
			units = append(units, uint16(u))
			i += 4
		case 't':
			units = append(units, '\t')
		case 'n':
			units = append(units, '\n')
		case 'r':
			units = append(units, '\r')
		case 'f':
			units = append(units, '\f')
		default:
			units = append(units, uint16(s[i]))
		}
	}
	return string(utf16.Decode(units)), nil
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

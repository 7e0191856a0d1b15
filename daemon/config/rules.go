package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// rule is a check beyond the type, and how to say it.
type rule struct {
	check func(parsed) bool
	text  string
}

// parsed is a value in its type: n for the whole numbers, f for Double, list for List, s as Kafka prints it back.
type parsed struct {
	s    string
	n    int64
	f    float64
	list []string
	yes  bool
}

var anything = rule{}

func atLeast(low float64) rule { return between(low, math.Inf(1)) }

func between(low, high float64) rule {
	text := "from " + number(low) + " to " + number(high)
	if math.IsInf(high, 1) {
		text = "at least " + number(low)
	}
	return rule{func(p parsed) bool { return p.f >= low && p.f <= high }, text}
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func oneOf(values ...string) rule {
	return rule{func(p parsed) bool { return slices.Contains(values, p.s) }, "one of " + strings.Join(values, ", ")}
}

func oneOfFold(values ...string) rule {
	return rule{func(p parsed) bool { return slices.Contains(values, strings.ToLower(p.s)) }, "one of " + strings.Join(values, ", ")}
}

func listOf(values ...string) rule {
	return rule{func(p parsed) bool {
		for _, v := range p.list {
			if !slices.Contains(values, v) {
				return false
			}
		}
		return true
	}, "a list of " + strings.Join(values, ", ")}
}

var notEmpty = rule{func(p parsed) bool { return p.s != "" }, "not empty"}

var gzipLevel = rule{func(p parsed) bool { return p.n == -1 || p.n >= 1 && p.n <= 9 }, "from 1 to 9, or -1"}

// throttled is a list of partition:broker, or *.
var throttled = rule{func(p parsed) bool {
	if len(p.list) == 1 && p.list[0] == "*" {
		return true
	}
	for _, v := range p.list {
		partition, broker, ok := strings.Cut(v, ":")
		if !ok || !digits(partition) || !digits(broker) {
			return false
		}
	}
	return true
}, "partition:broker,partition:broker,... or *"}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// releases are Kafka's protocol versions up to 3.9's own, each with its highest -IV (none below 0.10).
var releases = map[string]int{
	"0.8.0": -1, "0.8.1": -1, "0.8.2": -1, "0.9.0": -1, "0.10.0": 1, "0.10.1": 2, "0.10.2": 0, "0.11.0": 2, "1.0": 0, "1.1": 0,
	"2.0": 1, "2.1": 2, "2.2": 1, "2.3": 1, "2.4": 1, "2.5": 0, "2.6": 0, "2.7": 2, "2.8": 1, "3.0": 1, "3.1": 0, "3.2": 0, "3.3": 3,
	"3.4": 0, "3.5": 2, "3.6": 2, "3.7": 4, "3.8": 0, "3.9": 0, "4.0": 1,
}

// release takes versions as Kafka's MetadataVersion.fromVersionString: "3.9", "3.9-IV0", and "3.9.2", whose third number (below 1.0
// the fourth) and what follows do not count.
var release = rule{func(p parsed) bool {
	parts, n := strings.Split(p.s, "."), 2
	if parts[0] == "0" {
		n = 3
	}
	if len(parts) > n {
		_, known := releases[strings.Join(parts[:n], ".")]
		return known
	}
	name, iv, has := strings.Cut(p.s, "-IV")
	highest, known := releases[name]
	if !has {
		return known
	}
	i, err := strconv.Atoi(iv)
	return known && err == nil && digits(iv) && i <= highest && strconv.Itoa(i) == iv
}, "a Kafka version from 0.8.0 to 4.0"}

// parse reads a value in Kafka's way (ConfigDef.parseType: blanks around it do not count) and checks it.
func parse(t Type, value string, allowed rule) (parsed, error) {
	p, err := parseType(t, strings.TrimFunc(value, func(r rune) bool { return r <= ' ' }))
	if err == nil && allowed.check != nil && !allowed.check(p) {
		err = fmt.Errorf("allowed: %s", allowed.text)
	}
	return p, err
}

func parseType(t Type, s string) (parsed, error) {
	switch t {
	case Boolean:
		yes := strings.EqualFold(s, "true")
		if !yes && !strings.EqualFold(s, "false") {
			return parsed{}, fmt.Errorf("allowed: true or false")
		}
		return parsed{s: strconv.FormatBool(yes), yes: yes}, nil
	case Short:
		return parseWhole(s, 16)
	case Int:
		return parseWhole(s, 32)
	case Long:
		return parseWhole(s, 64)
	case Double:
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || strings.ContainsAny(s, "_xXpPiI") {
			return parsed{}, fmt.Errorf("allowed: a number")
		}
		return parsed{s: javaDouble(f), f: f}, nil
	case List:
		var list []string
		if s != "" {
			for v := range strings.SplitSeq(s, ",") {
				list = append(list, strings.TrimSpace(v))
			}
		}
		return parsed{s: strings.Join(list, ","), list: list}, nil
	}
	return parsed{s: s}, nil
}

func parseWhole(s string, bits int) (parsed, error) {
	n, err := strconv.ParseInt(s, 10, bits)
	if err != nil {
		low, high := int64(-1)<<(bits-1), int64(1)<<(bits-1)-1
		return parsed{}, fmt.Errorf("allowed: a whole number from %d to %d", low, high)
	}
	return parsed{s: strconv.FormatInt(n, 10), n: n, f: float64(n)}, nil
}

// javaDouble prints f as Java's Double.toString does.
func javaDouble(f float64) string {
	abs := math.Abs(f)
	if abs != 0 && (abs < 1e-3 || abs >= 1e7) {
		s := strconv.FormatFloat(f, 'E', -1, 64)
		mantissa, exponent, _ := strings.Cut(s, "E")
		if !strings.Contains(mantissa, ".") {
			mantissa += ".0"
		}
		e, _ := strconv.Atoi(exponent)
		return mantissa + "E" + strconv.Itoa(e)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

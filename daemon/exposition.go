package main

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// family is one family of numbers in Prometheus's text format.
type family struct {
	name, kind, help string
	samples          []sample
}

// sample is one number; labels are name and value in turn.
type sample struct {
	name   string
	labels []string
	value  float64
}

// label is the value of a label, "" if there is none.
func (s *sample) label(name string) string {
	for i := 0; i < len(s.labels); i += 2 {
		if s.labels[i] == name {
			return s.labels[i+1]
		}
	}
	return ""
}

var (
	metricName = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)
	labelName  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
)

// parser reads the text format, version 0.0.4, and takes nothing that is only nearly right: each family stands together behind its
// TYPE line, each series once, each histogram whole.
type parser struct {
	families []family
	names    map[string]bool
	series   map[string]bool
	help     string // of a HELP line whose TYPE has not come
	helped   string // its family
}

// parseNumbers reads an answer of /metrics.
func parseNumbers(text string) ([]family, error) {
	p := &parser{names: map[string]bool{}, series: map[string]bool{}}
	if text != "" && !strings.HasSuffix(text, "\n") {
		return nil, errors.New("the last line does not end")
	}
	line := 0
	for l := range strings.Lines(text) {
		line++
		if err := p.line(strings.TrimSuffix(l, "\n")); err != nil {
			return nil, fmt.Errorf("line %d: %w: %s", line, err, l)
		}
	}
	if p.helped != "" {
		return nil, fmt.Errorf("%s has a HELP line and no TYPE", p.helped)
	}
	for i := range p.families {
		if f := &p.families[i]; f.kind == "histogram" {
			if err := f.whole(); err != nil {
				return nil, err
			}
		}
	}
	return p.families, nil
}

func (p *parser) line(l string) error {
	if !strings.HasPrefix(l, "#") {
		return p.sample(l)
	}
	f := strings.SplitN(l, " ", 4)
	if len(f) < 3 || f[0] != "#" || !metricName.MatchString(f[2]) {
		return errors.New("not a comment of the format")
	}
	rest := ""
	if len(f) == 4 {
		rest = f[3]
	}
	switch f[1] {
	case "HELP":
		if p.helped != "" || p.names[f[2]] {
			return errors.New("HELP out of place")
		}
		p.helped, p.help = f[2], rest
	case "TYPE":
		return p.begin(f[2], rest)
	default:
		return errors.New("neither HELP nor TYPE")
	}
	return nil
}

func (p *parser) begin(name, kind string) error {
	switch kind {
	case "counter", "gauge", "histogram", "summary", "untyped":
	default:
		return errors.New("no such type")
	}
	if p.helped != "" && p.helped != name {
		return errors.New("HELP and TYPE of different families")
	}
	if p.names[name] {
		return errors.New("a family comes twice")
	}
	p.names[name] = true
	p.families = append(p.families, family{name: name, kind: kind, help: p.help})
	p.helped, p.help = "", ""
	return nil
}

func (p *parser) sample(l string) error {
	if len(p.families) == 0 || p.helped != "" {
		return errors.New("a sample without its TYPE")
	}
	f := &p.families[len(p.families)-1]
	var s sample
	end := strings.IndexAny(l, "{ ")
	if end < 0 {
		return errors.New("no value")
	}
	s.name = l[:end]
	rest := l[end:]
	if !f.has(s.name) {
		return errors.New("a sample of another family")
	}
	if rest[0] == '{' {
		var err error
		if s.labels, rest, err = cutLabels(rest); err != nil {
			return err
		}
	}
	series := l[:len(l)-len(rest)]
	if p.series[series] {
		return errors.New("a series comes twice")
	}
	p.series[series] = true
	if !strings.HasPrefix(rest, " ") {
		return errors.New("no blank before the value")
	}
	var err error
	if s.value, err = strconv.ParseFloat(strings.Replace(rest[1:], "Inf", "inf", 1), 64); err != nil {
		return errors.New("not a number")
	}
	if f.kind == "counter" && !(s.value >= 0) {
		return errors.New("a counter below zero")
	}
	f.samples = append(f.samples, s)
	return nil
}

// has says whether samples of that name belong to the family.
func (f *family) has(name string) bool {
	suffix, ok := strings.CutPrefix(name, f.name)
	switch {
	case !ok:
		return false
	case f.kind == "histogram":
		return suffix == "_bucket" || suffix == "_sum" || suffix == "_count"
	case f.kind == "summary":
		return suffix == "" || suffix == "_sum" || suffix == "_count"
	}
	return suffix == ""
}

// cutLabels reads {name="value",...}.
func cutLabels(l string) (labels []string, rest string, err error) {
	rest = l[1:]
	for {
		name, after, found := strings.Cut(rest, `="`)
		if !found || !labelName.MatchString(name) {
			return nil, "", errors.New("not a label")
		}
		for i := 0; i < len(labels); i += 2 {
			if labels[i] == name {
				return nil, "", errors.New("a label comes twice")
			}
		}
		value, after, err := cutValue(after)
		if err != nil {
			return nil, "", err
		}
		labels = append(labels, name, value)
		switch {
		case strings.HasPrefix(after, "}"):
			return labels, after[1:], nil
		case strings.HasPrefix(after, ","):
			rest = strings.TrimPrefix(after[1:], " ") // as some write it
		default:
			return nil, "", errors.New("labels do not end")
		}
	}
}

// cutValue reads up to the closing quotation mark.
func cutValue(l string) (value, rest string, err error) {
	var b strings.Builder
	for i := 0; i < len(l); i++ {
		switch c := l[i]; c {
		case '"':
			return b.String(), l[i+1:], nil
		case '\\':
			if i++; i == len(l) {
				return "", "", errors.New("an escape does not end")
			}
			switch l[i] {
			case 'n':
				b.WriteByte('\n')
			case '\\', '"':
				b.WriteByte(l[i])
			default:
				return "", "", errors.New("no such escape")
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", "", errors.New("a label's value does not end")
}

// histogram is one series of buckets: how many are at most le.
type histogram struct {
	labels     string
	le, counts []float64
	sum, count float64
	summed     bool
	counted    bool
}

// histograms are a family's series, by their labels but le, in order.
func (f *family) histograms() []*histogram {
	byLabels := map[string]*histogram{}
	var all []*histogram
	for i := range f.samples {
		s := &f.samples[i]
		key, le := "", ""
		for j := 0; j < len(s.labels); j += 2 {
			if s.labels[j] == "le" {
				le = s.labels[j+1]
			} else {
				key += s.labels[j] + "=" + s.labels[j+1] + " "
			}
		}
		h := byLabels[key]
		if h == nil {
			h = &histogram{labels: key}
			byLabels[key] = h
			all = append(all, h)
		}
		switch strings.TrimPrefix(s.name, f.name) {
		case "_bucket":
			bound, err := strconv.ParseFloat(le, 64)
			if err != nil {
				bound = math.NaN()
			}
			h.le, h.counts = append(h.le, bound), append(h.counts, s.value)
		case "_sum":
			h.sum, h.summed = s.value, true
		case "_count":
			h.count, h.counted = s.value, true
		}
	}
	return all
}

// whole holds a family of histograms against what each must be. Go's own come without sum and count.
func (f *family) whole() error {
	for _, h := range f.histograms() {
		last := len(h.le) - 1
		if last < 0 || h.summed != h.counted || !math.IsInf(h.le[last], 1) || h.counted && h.counts[last] != h.count {
			return fmt.Errorf("%s %s: not a whole histogram", f.name, h.labels)
		}
		for i := range last {
			if !(h.le[i] < h.le[i+1]) || h.counts[i] > h.counts[i+1] {
				return fmt.Errorf("%s %s: buckets out of order", f.name, h.labels)
			}
		}
	}
	return nil
}

// quantile estimates from the buckets what a share q of all stays below, evenly spread within a bucket.
func (h *histogram) quantile(q float64) float64 {
	rank := q * h.count
	if h.count == 0 {
		return math.NaN()
	}
	low, before := 0.0, 0.0
	for i, n := range h.counts {
		if n >= rank && n > before {
			if math.IsInf(h.le[i], 1) {
				return low
			}
			return low + (h.le[i]-low)*(rank-before)/(n-before)
		}
		low, before = h.le[i], n
	}
	return low
}

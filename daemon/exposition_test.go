package main

import (
	"math"
	"strings"
	"testing"
)

func TestParserIsStrict(t *testing.T) {
	good := "# HELP a_total Some \"words\".\n# TYPE a_total counter\na_total{x=\"1\",y=\"q\\\"\\\\\\n\"} 3\na_total 0\n" +
		"# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 3\nh_sum 9.5\nh_count 3\n# TYPE s summary\ns{quantile=\"0.5\"} NaN\ns_sum 1\ns_count 0\n"
	families, err := parseNumbers(good)
	if err != nil || len(families) != 3 || families[0].help != `Some "words".` || families[0].samples[0].label("y") != "q\"\\\n" {
		t.Fatalf("%+v %v", families, err)
	}
	for what, text := range map[string]string{
		"no TYPE":            "a 1\n",
		"HELP alone":         "# HELP a b\n",
		"other family":       "# TYPE a gauge\nb 1\n",
		"HELP of another":    "# HELP b x\n# TYPE a gauge\n",
		"twice":              "# TYPE a gauge\na 1\n# TYPE b gauge\nb 1\n# TYPE a gauge\n",
		"series twice":       "# TYPE a gauge\na{x=\"1\"} 1\na{x=\"1\"} 2\n",
		"label twice":        "# TYPE a gauge\na{x=\"1\",x=\"2\"} 1\n",
		"bad type":           "# TYPE a number\n",
		"bad name":           "# TYPE 1a gauge\n",
		"bad label":          "# TYPE a gauge\na{1=\"x\"} 1\n",
		"bad escape":         "# TYPE a gauge\na{x=\"\\t\"} 1\n",
		"open label":         "# TYPE a gauge\na{x=\"1} 1\n",
		"no value":           "# TYPE a gauge\na\n",
		"bad value":          "# TYPE a gauge\na one\n",
		"timestamp":          "# TYPE a gauge\na 1 2\n",
		"negative counter":   "# TYPE a counter\na -1\n",
		"cut":                "# TYPE a gauge\na 1",
		"empty line":         "# TYPE a gauge\n\n",
		"comment":            "# hello\n",
		"no +Inf":            "# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_sum 1\nh_count 1\n",
		"count differs":      "# TYPE h histogram\nh_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 2\n",
		"no sum":             "# TYPE h histogram\nh_bucket{le=\"+Inf\"} 1\nh_count 1\n",
		"buckets fall":       "# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 1\n",
		"bounds fall":        "# TYPE h histogram\nh_bucket{le=\"2\"} 1\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 1\n",
		"histogram unsuited": "# TYPE h histogram\nh 1\n",
	} {
		if _, err := parseNumbers(text); err == nil {
			t.Errorf("%s passes:\n%s", what, text)
		}
	}
}

// TestParserSurvivesDamage cuts a page at every byte and changes every byte: it is refused or read, never more is read than there is.
func TestParserSurvivesDamage(t *testing.T) {
	page := "# HELP a_total x\n# TYPE a_total counter\na_total{x=\"1\",y=\"q\\\"\"} 3\n# TYPE h histogram\nh_bucket{le=\"+Inf\"} 3\nh_sum 9.5\nh_count 3\n"
	look := func(text string) {
		families, err := parseNumbers(text)
		lines := 0
		for _, f := range families {
			lines += 1 + len(f.samples)
		}
		if err == nil && lines > strings.Count(text, "\n") {
			t.Errorf("%d lines were made of %q", lines, text)
		}
	}
	for i := range page {
		look(page[:i])
		for _, c := range "\x00\n\" {}=\\#,0\xff" {
			look(page[:i] + string(c) + page[i+1:])
		}
	}
}

func TestQuantiles(t *testing.T) {
	h := &histogram{le: []float64{1, 2, 4, math.Inf(1)}, counts: []float64{0, 50, 100, 100}, count: 100}
	for q, want := range map[float64]float64{0.5: 2, 0.25: 1.5, 0.75: 3, 1: 4} {
		if got := h.quantile(q); got != want {
			t.Errorf("%v: %v, want %v", q, got, want)
		}
	}
	beyond := &histogram{le: []float64{1, math.Inf(1)}, counts: []float64{0, 5}, count: 5}
	if got := beyond.quantile(0.5); got != 1 {
		t.Errorf("beyond the last bound: %v", got)
	}
	if got := (&histogram{}).quantile(0.5); !math.IsNaN(got) {
		t.Errorf("of nothing: %v", got)
	}
}

package config

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
)

// A server.properties of more bytes is not one.
const fileBytesMax = 8 << 20

func load(file string, overrides []string) (*Config, []Warning, error) {
	static, lines := map[string]string{}, map[string]int{}
	if file == "" {
		static["log.dirs"] = stateDir()
	} else if err := readFile(file, static, lines); err != nil {
		return nil, nil, err
	}
	for _, o := range overrides {
		key, value, given := strings.Cut(o, "=")
		if !given || strings.TrimSpace(key) == "" {
			return nil, nil, &Malformed{"--override", o, "allowed: key=value"}
		}
		static[strings.TrimSpace(key)] = value
		delete(lines, strings.TrimSpace(key))
	}
	c, warnings, err := fromStatic(static)
	if line := lines[keyOf(err)]; line > 0 {
		err = fmt.Errorf("%s:%d: %w", file, line, err)
	}
	return c, warnings, err
}

// keyOf is the setting that an error is about, "" if it is about none.
func keyOf(err error) string {
	var malformed *Malformed
	var unsupported *Unsupported
	switch {
	case errors.As(err, &malformed):
		return malformed.Key
	case errors.As(err, &unsupported):
		return unsupported.Key
	}
	return ""
}

// stateDir is where data goes if no file says: systemd's StateDirectory= if it made one, else a folder here.
func stateDir() string {
	first, _, _ := strings.Cut(os.Getenv("STATE_DIRECTORY"), ":")
	if first != "" {
		return first
	}
	return "./kring-data"
}

// readFile reads settings and the lines they stand on.
func readFile(file string, into map[string]string, lines map[string]int) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, fileBytesMax+1))
	if err != nil {
		return err
	}
	if len(text) > fileBytesMax {
		return fmt.Errorf("%s: more than %d bytes, not a properties file", file, fileBytesMax)
	}
	properties, err := ParseProperties(text)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for _, p := range properties {
		into[p.Key], lines[p.Key] = p.Value, p.Line
	}
	return nil
}

// fromStatic checks every setting by itself, then builds the whole.
func fromStatic(static map[string]string) (*Config, []Warning, error) {
	names := slices.Sorted(maps.Keys(static))
	if v, set := static["process.roles"]; set && strings.TrimSpace(v) != "" { // says more than the KRaft keys that come with it
		return nil, nil, &Unsupported{"process.roles", v, noKRaft}
	}
	var warnings []Warning
	var unsupported error
	for _, name := range names {
		k, value := LookupBroker(name), static[name]
		if k == nil {
			w, err := unknown(name, value)
			if err != nil {
				return nil, nil, err
			}
			warnings = append(warnings, w)
			continue
		}
		p, err := parse(k.Type, value, k.Allowed)
		if err != nil {
			return nil, nil, &Malformed{name, value, err.Error()}
		}
		switch {
		case p.s == k.Default || k.Default == null && p.s == "" || k.Acts():
		case k.refused():
			if unsupported == nil {
				unsupported = &Unsupported{name, value, k.Doc}
			}
		case k.moot():
			warnings = append(warnings, Warning{name, "sets nothing here: " + k.Doc})
		default:
			warnings = append(warnings, Warning{name, "does not act yet"})
		}
	}
	if unsupported != nil {
		return nil, nil, unsupported
	}
	c, err := build(twins(static), nil, nil)
	if err == nil && c.Groups.MinSessionMs > c.Groups.MaxSessionMs {
		warnings = append(warnings, Warning{"group.min.session.timeout.ms",
			"is more than group.max.session.timeout.ms: no consumer can join a group"})
	}
	return c, warnings, err
}

// twins gives broker.id and node.id the same value where one of them is set, as Kafka does (KafkaConfig.populateSynonyms).
func twins(static map[string]string) map[string]string {
	static = maps.Clone(static)
	for _, pair := range [][2]string{{"broker.id", "node.id"}, {"node.id", "broker.id"}} {
		if v, set := static[pair[0]]; set {
			if _, set := static[pair[1]]; !set {
				static[pair[1]] = v
			}
		}
	}
	return static
}

// unknown says what becomes of a key that is in nobody's list: another program's or a plugin's does no harm, but one of ours is
// misspelt.
func unknown(name, value string) (Warning, error) {
	switch {
	case strings.HasPrefix(name, ownPrefix):
		return Warning{}, misspelt(name, value)
	case strings.HasPrefix(name, "listener.name."):
		return Warning{name, "settings of a single listener do not act yet"}, nil
	}
	if best, d := nearest(name, BrokerKeys); d <= 2 {
		return Warning{name, "unknown, ignored; the nearest is " + best}, nil
	}
	return Warning{name, "unknown, ignored"}, nil
}

// misspelt refuses a key that begins like ours and names the one that is most like it.
func misspelt(name, value string) error {
	best, _ := nearest(name, ownKeys)
	return &Malformed{name, value, "there is no such setting; the nearest is " + best}
}

// nearest is the key whose name is most like name, and how far it is.
func nearest(name string, keys []Key) (string, int) {
	best, least := "", math.MaxInt
	for i := range keys {
		if d := distance(name, keys[i].Name); d < least {
			best, least = keys[i].Name, d
		}
	}
	return best, least
}

// distance is how many bytes must be put in, taken out or changed to make b of a (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

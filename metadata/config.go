package metadata

import "strings"

// Setting is one configured value.
type Setting struct{ Name, Value string }

// Config is what is set for one topic, broker or other entity, in the order of its znode. It is immutable.
type Config []Setting

// Get is the value set for name.
func (c Config) Get(name string) (string, bool) {
	for i := range c {
		if c[i].Name == name {
			return c[i].Value, true
		}
	}
	return "", false
}

// With is c with name set to value: in its place if it was set, else behind the others.
func (c Config) With(name, value string) Config {
	out := make(Config, 0, len(c)+1)
	found := false
	for _, s := range c {
		if s.Name == name {
			s.Value, found = value, true
		}
		out = append(out, s)
	}
	if !found {
		out = append(out, Setting{name, value})
	}
	return out
}

// Without is c without name.
func (c Config) Without(name string) Config {
	out := make(Config, 0, len(c))
	for _, s := range c {
		if s.Name != name {
			out = append(out, s)
		}
	}
	return out
}

// Names are what is set, separated by commas: values may be secret.
func (c Config) Names() string {
	names := make([]string, len(c))
	for i, s := range c {
		names[i] = s.Name
	}
	return strings.Join(names, ",")
}

// Equal tells whether both set the same values, in whatever order.
func (c Config) Equal(d Config) bool {
	if len(c) != len(d) {
		return false
	}
	for _, s := range c {
		if v, ok := d.Get(s.Name); !ok || v != s.Value {
			return false
		}
	}
	return true
}

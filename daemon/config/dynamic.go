package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// fixedListeners are dynamic in Kafka and bound once here.
var fixedListeners = []string{"advertised.listeners", "listener.security.protocol.map", "listeners"}

func lookupDynamic(name string) *Key {
	if k := LookupBroker(name); k != nil {
		return k
	}
	for i := range dynamicOnly {
		if dynamicOnly[i].Name == name {
			return &dynamicOnly[i]
		}
	}
	return nil
}

// checkDynamic checks one dynamic setting by itself. Names nobody knows pass, as in Kafka: a plugin may know them.
func checkDynamic(name, value string, all bool) error {
	k := lookupDynamic(name)
	switch {
	case k == nil && strings.HasPrefix(name, ownPrefix):
		return misspelt(name, value)
	case k == nil:
		return nil
	case k.Dynamic == readOnly:
		return &Fixed{name, "it is read at start only"}
	case k.Dynamic == perBroker && all:
		return &Fixed{name, "it belongs to a single broker"}
	case slices.Contains(fixedListeners, name):
		return &Fixed{name, "listeners are bound at start only"}
	case k.sensitive():
		return &Fixed{name, "passwords cannot be kept encrypted yet"}
	}
	if _, err := parse(k.Type, value, k.Allowed); err != nil {
		return &Malformed{name, value, err.Error()}
	}
	return nil
}

func (c *Config) checkBroker(settings map[string]string, all bool) error {
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if err := checkDynamic(name, settings[name], all); err != nil {
			return err
		}
	}
	broker, every := settings, c.layers.all
	if all {
		broker, every = c.layers.broker, settings
	}
	next, err := build(c.layers.static, broker, every)
	if err != nil {
		return err
	}
	return c.checkThreads(next)
}

// checkThreads holds log.cleaner.threads to what Kafka lets it become in one step.
func (c *Config) checkThreads(next *Config) error {
	n, was := next.CleanerThreads, c.CleanerThreads
	if n == was || n >= max(1, was/2) && n <= 2*was {
		return nil
	}
	return &Malformed{"log.cleaner.threads", strconv.Itoa(n),
		fmt.Sprintf("allowed: from %d to %d, half of the present number to twice as many", max(1, was/2), 2*was)}
}

func (c *Config) with(broker, all map[string]string) (*Config, []error) {
	var errs []error
	valid := func(settings map[string]string, all bool) map[string]string {
		kept := map[string]string{}
		for _, name := range slices.Sorted(maps.Keys(settings)) {
			if err := checkDynamic(name, settings[name], all); err != nil {
				errs = append(errs, err)
			} else {
				kept[name] = settings[name]
			}
		}
		return kept
	}
	next, err := build(c.layers.static, valid(broker, false), valid(all, true))
	if err != nil { // each is valid, together they are not: what was in force stays
		return c, append(errs, err)
	}
	next.keep(c)
	return next, errs
}

// keep takes over what was found at start: the host that stands for an empty one, and the broker's id.
func (c *Config) keep(found *Config) {
	for i := range c.Advertised {
		c.Advertised[i].Host = found.Advertised[i].Host
	}
	c.BrokerID = found.BrokerID
}

func (c *Config) reload(read *Config) (next *Config, changed, fixed []string, err error) {
	static := maps.Clone(c.layers.static)
	names := maps.Clone(static)
	maps.Copy(names, read.layers.static)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		is, set := read.layers.static[name]
		if was, had := static[name]; was == is && had == set {
			continue
		}
		k := LookupBroker(name)
		switch {
		case k == nil: // nobody here reads it
		case k.Dynamic == readOnly || slices.Contains(fixedListeners, name) || k.sensitive():
			fixed = append(fixed, name)
			continue
		default:
			changed = append(changed, name)
		}
		if static[name] = is; !set {
			delete(static, name)
		}
	}
	if next, err = build(static, c.layers.broker, c.layers.all); err != nil {
		return nil, nil, nil, err
	}
	next.keep(c)
	return next, changed, fixed, nil
}

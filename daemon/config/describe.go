package config

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

func number64(n int64) string { return strconv.FormatInt(n, 10) }

func (c *Config) describeTopic(overrides map[string]string) []Entry {
	entries := make([]Entry, 0, len(TopicKeys))
	for i := range TopicKeys {
		k := &TopicKeys[i]
		value := k.get(c, overrides).s
		e := Entry{Name: k.Name, Value: &value, Source: SourceDefault, Type: k.Type, Doc: k.Doc}
		if _, set := overrides[k.Name]; set {
			e.Synonyms = append(e.Synonyms, Synonym{k.Name, &value, SourceTopic})
		}
		if k.broker != nil {
			e.Synonyms = append(e.Synonyms, c.synonyms(k.broker[0].name, k.broker)...)
		}
		if len(e.Synonyms) > 0 {
			e.Source = e.Synonyms[0].Source
		}
		entries = append(entries, e)
	}
	return entries
}

// synonyms lists every place where one of the keys is set, in the order in which they win, down to the defaults. What stands
// before the first entry of name itself is left out, as Kafka does (ConfigHelper.configSynonyms).
func (c *Config) synonyms(name string, keys []unit) []Synonym {
	var all []Synonym
	add := func(layer map[string]string, source Source) {
		for _, u := range keys {
			if v, set := layer[u.name]; set {
				all = append(all, synonym(u.name, v, source))
			}
		}
	}
	add(c.layers.broker, SourceBroker)
	add(c.layers.all, SourceDefaultBroker)
	add(c.layers.static, SourceStatic)
	for _, u := range keys {
		if k := LookupBroker(u.name); k != nil && k.Default != null {
			all = append(all, synonym(u.name, k.Default, SourceDefault))
		}
	}
	for i, s := range all {
		if s.Name == name {
			return all[i:]
		}
	}
	return nil
}

func synonym(name, value string, source Source) Synonym {
	k := lookupDynamic(name)
	if k == nil || k.sensitive() {
		return Synonym{name, nil, source}
	}
	return Synonym{name, &value, source}
}

// siblings are the keys that set the same thing as name, the finest first.
func siblings(name string) []unit {
	for _, group := range [][]unit{retentionTime, rollTime, rollJitter} {
		for _, u := range group {
			if u.name == name {
				return group
			}
		}
	}
	if name == flushTime[0].name {
		return flushTime
	}
	return same(name)
}

func (c *Config) describeBroker() []Entry {
	var entries []Entry
	for i := range BrokerKeys {
		if k := &BrokerKeys[i]; k.Listed() {
			entries = append(entries, c.brokerEntry(k.Name, k))
		}
	}
	for _, layer := range []map[string]string{c.layers.static, c.layers.all, c.layers.broker} {
		for _, name := range slices.Sorted(maps.Keys(layer)) {
			if LookupBroker(name) == nil && !slices.ContainsFunc(entries, func(e Entry) bool { return e.Name == name }) {
				entries = append(entries, c.brokerEntry(name, lookupDynamic(name)))
			}
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return entries
}

// brokerEntry describes one key; of one that is not known (k is nil) nobody can say that its value may be shown.
func (c *Config) brokerEntry(name string, k *Key) Entry {
	e := Entry{Name: name, ReadOnly: true, Sensitive: true, Source: SourceDefault, Synonyms: c.synonyms(name, siblings(name))}
	if k != nil {
		e.ReadOnly, e.Sensitive, e.Type, e.Doc = k.Dynamic == readOnly, k.sensitive(), k.Type, k.Doc
		e.ReadOnly = e.ReadOnly || LookupBroker(name) == nil // what is dynamic only is read only to Kafka
		if !k.Acts() {
			e.Doc = "" // it says why it does nothing
		}
		if p, ok := c.layers.get(name); ok && !e.Sensitive {
			e.Value = &p.s
		}
	}
	if len(e.Synonyms) > 0 {
		e.Source = e.Synonyms[0].Source
	}
	return e
}

func (c *Config) describeDefaults() []Entry {
	var entries []Entry
	for _, name := range slices.Sorted(maps.Keys(c.layers.all)) {
		e := c.brokerEntry(name, lookupDynamic(name))
		e.Synonyms = slices.DeleteFunc(e.Synonyms, func(s Synonym) bool { return s.Source != SourceDefaultBroker })
		if value := c.layers.all[name]; !e.Sensitive {
			e.Value = &value
		}
		e.Source = SourceDefaultBroker
		entries = append(entries, e)
	}
	return entries
}

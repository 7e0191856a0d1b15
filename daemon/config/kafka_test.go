package config

import (
	"os"
	"slices"
	"strings"
	"testing"
)

type kafkaKey struct {
	name, kind, def, valid, scope string
	internal                      bool
}

// kafkaKeys reads what Kafka 3.9.2 prints of its own settings.
func kafkaKeys(t *testing.T, file string) []kafkaKey {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var keys []kafkaKey
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		keys = append(keys, kafkaKey{f[0], f[1], f[2], f[3], f[4], f[5] == "internal"})
	}
	return keys
}

var typeNames = map[Type]string{Boolean: "BOOLEAN", String: "STRING", Int: "INT", Short: "SHORT", Long: "LONG", Double: "DOUBLE",
	List: "LIST", Class: "CLASS", Password: "PASSWORD"}

func TestBrokerKeysAreKafkas(t *testing.T) {
	theirs := kafkaKeys(t, "kafka-broker-keys.tsv")
	if len(theirs)+len(ownKeys) != len(BrokerKeys) {
		t.Errorf("%d keys, Kafka has %d and we %d of our own", len(BrokerKeys), len(theirs), len(ownKeys))
	}
	scopes := map[Scope]string{readOnly: "read-only", perBroker: "per-broker", clusterWide: "cluster-wide"}
	for _, want := range theirs {
		k := LookupBroker(want.name)
		if k == nil {
			t.Errorf("%s is missing", want.name)
			continue
		}
		checkFacts(t, want, k.Type, k.Default, k.Allowed)
		if scopes[k.Dynamic] != want.scope || k.Listed() == want.internal {
			t.Errorf("%s: %s, listed %v; Kafka: %s, internal %v", want.name, scopes[k.Dynamic], k.Listed(), want.scope, want.internal)
		}
	}
	for _, k := range BrokerKeys {
		if strings.HasPrefix(k.Name, ownPrefix) != slices.ContainsFunc(ownKeys, func(o Key) bool { return o.Name == k.Name }) {
			t.Errorf("%s: our own keys begin with kring., and no others", k.Name)
		}
		if (k.Acts() || k.refused() || k.moot()) == (k.Doc == "") {
			t.Errorf("%s: keys that act, are refused or moot say what they do or why, the others nothing", k.Name)
		}
	}
}

func TestTopicKeysAreKafkas(t *testing.T) {
	theirs := kafkaKeys(t, "kafka-topic-keys.tsv")
	if len(theirs) != len(TopicKeys) {
		t.Errorf("%d keys, Kafka has %d", len(TopicKeys), len(theirs))
	}
	for _, want := range theirs {
		k := LookupTopic(want.name)
		if k == nil {
			t.Errorf("%s is missing", want.name)
			continue
		}
		checkFacts(t, want, k.Type, k.Default, k.Allowed)
		for _, u := range k.broker {
			if LookupBroker(u.name) == nil {
				t.Errorf("%s: no broker key %s", want.name, u.name)
			}
		}
	}
	for i := 1; i < len(TopicKeys); i++ {
		if TopicKeys[i-1].Name >= TopicKeys[i].Name {
			t.Errorf("%s stands behind %s", TopicKeys[i].Name, TopicKeys[i-1].Name)
		}
	}
}

func checkFacts(t *testing.T, want kafkaKey, kind Type, def string, allowed rule) {
	t.Helper()
	if typeNames[kind] != want.kind {
		t.Errorf("%s: type %s, Kafka: %s", want.name, typeNames[kind], want.kind)
	}
	shown := strings.ReplaceAll(strings.ReplaceAll(def, `\`, `\\`), null, `\N`)
	if shown != want.def {
		t.Errorf("%s: default %q, Kafka: %q", want.name, shown, want.def)
	}
	if def != null {
		if p, err := parse(kind, def, allowed); err != nil || p.s != def {
			t.Errorf("%s: the default %q reads as %q, %v", want.name, def, p.s, err)
		}
	}
	if refuses := allowed.check != nil; refuses == (want.valid == "" || unchecked[want.valid] || strings.HasPrefix(want.valid, "The default")) {
		t.Errorf("%s: a rule %v (%s), Kafka: %q", want.name, refuses, allowed.text, want.valid)
	}
	for value, ok := range samples(want.valid) {
		if _, err := parse(kind, value, allowed); (err == nil) != ok {
			t.Errorf("%s=%s: valid is %v, Kafka says %s", want.name, value, err == nil, want.valid)
		}
	}
}

// unchecked are rules that every value that can stand in a file meets.
var unchecked = map[string]bool{"non-null string": true, "non-empty list": true}

// samples makes values at both sides of what Kafka prints as valid.
func samples(valid string) map[string]bool {
	s := map[string]bool{}
	if !strings.HasPrefix(valid, "[") || strings.Contains(valid, "partitionId") || strings.Contains(valid, " or ") {
		return s
	}
	inner := strings.Trim(valid, "[]")
	low, high, ranged := strings.Cut(inner, ",...")
	if !ranged {
		for v := range strings.SplitSeq(inner, ", ") {
			s[v], s[v+"x"] = true, false
		}
		return s
	}
	s[low], s[below(low)] = true, false
	if high = strings.Trim(high, ","); high != "" {
		s[high], s["1"+strings.TrimSuffix(high, ".5")] = true, false
	}
	return s
}

func below(low string) string {
	p, _ := parse(Long, low, anything)
	return number64(p.n - 1)
}

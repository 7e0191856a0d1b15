package config

import (
	"os"
	"strings"
	"testing"
)

var sourceNames = map[Source]string{SourceTopic: "DYNAMIC_TOPIC_CONFIG", SourceBroker: "DYNAMIC_BROKER_CONFIG",
	SourceDefaultBroker: "DYNAMIC_DEFAULT_BROKER_CONFIG", SourceStatic: "STATIC_BROKER_CONFIG", SourceDefault: "DEFAULT_CONFIG"}

// asTool prints an entry as kafka-configs does.
func asTool(e Entry) string {
	text := func(v *string) string {
		if v == nil {
			return "null"
		}
		return *v
	}
	var synonyms []string
	for _, s := range e.Synonyms {
		synonyms = append(synonyms, sourceNames[s.Source]+":"+s.Name+"="+text(s.Value))
	}
	sensitive := "false"
	if e.Sensitive {
		sensitive = "true"
	}
	return "  " + e.Name + "=" + text(e.Value) + " sensitive=" + sensitive + " synonyms={" + strings.Join(synonyms, ", ") + "}"
}

// TestDescriptionsAreKafkas compares with what Kafka's own tool printed of a broker with the same settings.
func TestDescriptionsAreKafkas(t *testing.T) {
	text, err := os.ReadFile("testdata/described.properties")
	if err != nil {
		t.Fatal(err)
	}
	static := map[string]string{}
	properties, err := ParseProperties(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range properties {
		if p.Key != "zookeeper.connect" { // not served yet; it is in Kafka's answer alone
			static[p.Key] = p.Value
		}
	}
	c, _, err := fromStatic(static)
	if err != nil {
		t.Fatal(err)
	}
	c, errs := c.With(settings("log.retention.ms=300 log.segment.bytes=2000000"), settings("log.retention.ms=400 message.max.bytes=77777"))
	if errs != nil {
		t.Fatal(errs)
	}
	// Kafka takes the hours out of force when the milliseconds are set dynamically, and then shows their default as the value.
	different := map[string]bool{"log.retention.hours": true, "zookeeper.connect": true}
	for file, entries := range map[string][]Entry{
		"describe-plain.txt":   c.DescribeTopic(nil),
		"describe-set.txt":     c.DescribeTopic(settings("retention.ms=1000 cleanup.policy=compact flush.messages=1 min.cleanable.dirty.ratio=0.10")),
		"describe-broker.txt":  c.DescribeBroker(),
		"describe-default.txt": c.DescribeDefaults(),
	} {
		want, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		theirs := map[string]string{}
		for line := range strings.Lines(string(want)) {
			if name, _, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
				theirs[name] = strings.TrimSuffix(line, "\n")
			}
		}
		for _, e := range entries {
			if got := asTool(e); !different[e.Name] && !strings.HasPrefix(e.Name, "kring.") && got != theirs[e.Name] {
				t.Errorf("%s:\n ours   %s\n Kafka's %s", file, got, theirs[e.Name])
			}
			delete(theirs, e.Name)
		}
		if len(theirs) > 0 {
			t.Errorf("%s: not described: %v", file, theirs)
		}
	}
}

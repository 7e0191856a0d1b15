package config

import "fmt"

// Malformed is a value that is not valid, for whatever source it came from.
type Malformed struct {
	Key, Value string
	Why        string // what is allowed
}

func (e *Malformed) Error() string {
	return fmt.Sprintf("%s=%s is not valid; %s", e.Key, shown(e.Key, e.Value), e.Why)
}

// Unsupported is a setting that is valid in Kafka and cannot be honoured here, where ignoring it would lose data or open access.
type Unsupported struct {
	Key, Value string
	Why        string
}

func (e *Unsupported) Error() string {
	return fmt.Sprintf("%s=%s is not supported: %s", e.Key, shown(e.Key, e.Value), e.Why)
}

// Unknown is a topic setting of a name Kafka does not have.
type Unknown struct{ Key string }

func (e *Unknown) Error() string { return "Unknown topic config name: " + e.Key }

// Fixed is a dynamic broker setting that cannot be changed while the broker runs.
type Fixed struct {
	Key string
	Why string
}

func (e *Fixed) Error() string {
	return fmt.Sprintf("%s cannot be changed dynamically: %s", e.Key, e.Why)
}

// shown hides what must not reach a log and shortens what is long.
func shown(key, value string) string {
	if k := LookupBroker(key); k != nil && k.sensitive() {
		return "[hidden]"
	}
	if len(value) > 200 {
		return fmt.Sprintf("%.200q...", value)
	}
	for _, r := range value {
		if r < ' ' || r == 0x7f {
			return fmt.Sprintf("%q", value)
		}
	}
	return value
}

package metadata

import (
	"fmt"
	"strings"
)

// maxTopicName leaves room for "-<partition>" and ".<uuid>-delete" in a file name of 255 bytes.
const maxTopicName = 249

// CheckTopicName says why a topic cannot have this name; nil if it can.
func CheckTopicName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("topic name is empty")
	case name == "." || name == "..":
		return fmt.Errorf("topic name %q is not allowed", name)
	case len(name) > maxTopicName:
		return fmt.Errorf("topic name has %d characters, more than %d", len(name), maxTopicName)
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
		if !ok {
			return fmt.Errorf("topic name %q contains a character other than ASCII letters, digits, '.', '_' and '-'", name)
		}
	}
	return nil
}

// CollisionKey is equal for two names that may not exist beside each other: metrics turn '.' into '_'.
func CollisionKey(name string) string { return strings.ReplaceAll(name, ".", "_") }

// Collides tells whether two topic names differ only in '.' and '_'.
func Collides(a, b string) bool {
	if len(a) != len(b) || a == b {
		return false
	}
	for i := 0; i < len(a); i++ {
		x, y := a[i], b[i]
		if x != y && !(x == '.' && y == '_' || x == '_' && y == '.') {
			return false
		}
	}
	return true
}

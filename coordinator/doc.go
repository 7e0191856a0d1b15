// Package coordinator decides about consumer groups.
package coordinator

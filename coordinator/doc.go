// Package coordinator decides about consumer groups: who is a member, which generation it is, what is assigned to whom, and
// which offsets are committed.
package coordinator

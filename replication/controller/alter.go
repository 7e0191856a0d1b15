package controller

import (
	"fmt"
	"slices"
	"strings"

	"kring/metadata"
)

// checkOps refuses what no alteration may hold: a setting named twice (but in a legacy one, where the last counts), a null where
// a value is needed. Errors are *Error.
func checkOps(ops []ConfigOp, replace bool) error {
	var twice, null []string
	for i, op := range ops {
		named := func(o ConfigOp) bool { return o.Name == op.Name }
		if !replace && slices.ContainsFunc(ops[:i], named) && !slices.Contains(twice, op.Name) {
			twice = append(twice, op.Name)
		}
		if op.Value == nil && op.Kind != ConfigDelete {
			null = append(null, op.Name)
		}
	}
	if len(twice) > 0 {
		return &Error{InvalidRequest, "Error due to duplicate config keys : " + strings.Join(twice, ",")}
	}
	if len(null) > 0 {
		return &Error{InvalidRequest, "Null value not supported for : " + strings.Join(null, ",")}
	}
	return nil
}

// alter applies operations to a configuration. byDefault gives what Append and Subtract begin with where nothing is set, and
// whether the setting is a list. Errors are *Error.
func alter(old metadata.Config, ops []ConfigOp, replace bool, byDefault func(string) (string, bool)) (metadata.Config, error) {
	next := old
	if replace {
		next = nil
	}
	for _, op := range ops {
		switch op.Kind {
		case ConfigSet:
			next = next.With(op.Name, *op.Value)
		case ConfigDelete:
			next = next.Without(op.Name)
		case ConfigAppend, ConfigSubtract:
			value, list := "", true
			if byDefault != nil {
				value, list = byDefault(op.Name)
			}
			if !list {
				return nil, &Error{InvalidConfig, fmt.Sprintf("Config value append is not allowed for config key: %s", op.Name)}
			}
			if set, ok := next.Get(op.Name); ok {
				value = set
			}
			next = next.With(op.Name, changeList(value, *op.Value, op.Kind == ConfigAppend))
		default:
			return nil, &Error{InvalidRequest, fmt.Sprintf("Unknown operation %d on config key %s", op.Kind, op.Name)}
		}
	}
	return next, nil
}

// changeList adds the elements of change that are missing, or takes each of them away once.
func changeList(value, change string, add bool) string {
	elements := strings.Split(value, ",")
	for _, e := range strings.Split(change, ",") {
		i := slices.Index(elements, e)
		switch {
		case add && i < 0:
			elements = append(elements, e)
		case !add && i >= 0:
			elements = slices.Delete(elements, i, i+1)
		}
	}
	return strings.Join(elements, ",")
}

package metadata

import "errors"

// What a store answers when it did not do as asked. All but ErrConnectionLoss and ErrClosed are refusals: nothing was applied.
var (
	// ErrNoNode: the node, or the parent of one to be created, does not exist.
	ErrNoNode = errors.New("no such node")
	// ErrNodeExists: the node to be created exists.
	ErrNodeExists = errors.New("node exists")
	// ErrBadVersion: the node's data version is not the one asked for.
	ErrBadVersion = errors.New("version does not match")
	// ErrNotEmpty: the node to be deleted has children.
	ErrNotEmpty = errors.New("node has children")
	// ErrNoChildrenForEphemerals: an ephemeral node can have no children.
	ErrNoChildrenForEphemerals = errors.New("an ephemeral node may not have children")
	// ErrBadArguments: a path or operation that no store could apply.
	ErrBadArguments = errors.New("bad arguments")
	// ErrRolledBack marks the operations of a multi that were refused only because another one was.
	ErrRolledBack = errors.New("rolled back with its multi")
	// ErrNoAuth: the store's access rules do not let us.
	ErrNoAuth = errors.New("not authorized")
	// ErrSessionExpired: our session and its ephemeral nodes are gone; this operation was not applied.
	ErrSessionExpired = errors.New("session expired")
	// ErrConnectionLoss: the answer did not come; whether the operation was applied is unknown.
	ErrConnectionLoss = errors.New("connection lost, outcome unknown")
	// ErrFenced: the store can no longer keep what it is told (a failed fsync) and refuses all that follows. Of the
	// operations under way when it happened it is not known whether a restart will show them.
	ErrFenced = errors.New("store is fenced")
	// ErrNoSpace: the disk is full, and enough changes wait for room already.
	ErrNoSpace = errors.New("store has no space")
	// ErrClosed: the store was closed before the operation was applied.
	ErrClosed = errors.New("store is closed")
)

// Outcome is what became of an operation.
type Outcome uint8

// The outcomes. Whoever gets Unknown must read before it writes again.
const (
	Applied Outcome = iota
	Refused
	Unknown
)

// OutcomeOf tells the outcome from the error of Do.
func OutcomeOf(err error) Outcome {
	switch {
	case err == nil:
		return Applied
	case errors.Is(err, ErrConnectionLoss), errors.Is(err, ErrFenced):
		return Unknown
	}
	for _, refusal := range refusals {
		if errors.Is(err, refusal) {
			return Refused
		}
	}
	return Unknown
}

var refusals = []error{ErrNoNode, ErrNodeExists, ErrBadVersion, ErrNotEmpty, ErrNoChildrenForEphemerals, ErrBadArguments,
	ErrRolledBack, ErrNoAuth, ErrSessionExpired, ErrNoSpace, ErrClosed}

// OpError says which operation on which node got which of the errors above.
type OpError struct {
	Op   string
	Path string
	Err  error
}

func (e *OpError) Error() string { return e.Op + " " + e.Path + ": " + e.Err.Error() }

// Unwrap gives the error of this package.
func (e *OpError) Unwrap() error { return e.Err }

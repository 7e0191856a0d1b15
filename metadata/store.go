package metadata

// Zxid numbers the changes of a store, rising, with gaps: refused ones may use up numbers.
type Zxid int64

// SessionID names a client's session; a new one is never equal to an older one.
type SessionID int64

// Stat is what the store knows of a node, as in ZooKeeper's Stat.
type Stat struct {
	Czxid, Mzxid, Pzxid Zxid      // of the node's creation, its last data change, the last change of its list of children
	Ctime, Mtime        int64     // Unix ms
	Version             int32     // number of data changes
	Cversion            int32     // number of children created and deleted
	Aversion            int32     // number of ACL changes
	EphemeralOwner      SessionID // 0 if persistent
	DataLength          int32
	NumChildren         int32
}

// OpKind is what an Op does.
type OpKind uint8

// The kinds of Op.
const (
	OpCreate OpKind = iota + 1
	OpSetData
	OpDelete
	OpCheck
)

func (k OpKind) String() string {
	switch k {
	case OpCreate:
		return "create"
	case OpSetData:
		return "setData"
	case OpDelete:
		return "delete"
	case OpCheck:
		return "check"
	}
	return "unknown op"
}

// AnyVersion as Op.Version asks for no check of the version.
const AnyVersion int32 = -1

// Op is one operation on one node. The store keeps no reference to Data after Do.
type Op struct {
	Kind       OpKind
	Path       string
	Data       []byte // create, setData; nil and empty are two things, as in ZooKeeper
	Version    int32  // setData, delete, check
	Ephemeral  bool   // create
	Sequential bool   // create: the parent's counter is put behind Path with ten digits
}

// Create makes a persistent node.
func Create(path string, data []byte) Op { return Op{Kind: OpCreate, Path: path, Data: data} }

// CreateEphemeral makes a node that goes with our session.
func CreateEphemeral(path string, data []byte) Op {
	return Op{Kind: OpCreate, Path: path, Data: data, Ephemeral: true}
}

// CreateSequential makes a persistent node with a number behind prefix.
func CreateSequential(prefix string, data []byte) Op {
	return Op{Kind: OpCreate, Path: prefix, Data: data, Sequential: true}
}

// SetData replaces a node's data if its version is the given one.
func SetData(path string, data []byte, version int32) Op {
	return Op{Kind: OpSetData, Path: path, Data: data, Version: version}
}

// Delete removes a node without children if its version is the given one.
func Delete(path string, version int32) Op { return Op{Kind: OpDelete, Path: path, Version: version} }

// Check refuses the whole multi unless the node is there with this version.
func Check(path string, version int32) Op { return Op{Kind: OpCheck, Path: path, Version: version} }

// Result is what one Op of a Do came to.
type Result struct {
	Path string // of the node created: with its number if sequential
	Stat Stat   // after create and setData
	Err  error  // in a refused multi: nil before the refused operation, ErrRolledBack behind it
}

// EventType is the kind of an Event.
type EventType uint8

// The events: four of watches, three of the session.
const (
	NodeCreated EventType = iota + 1
	NodeDeleted
	NodeDataChanged
	NodeChildrenChanged
	// Disconnected: what is under way ends in ErrConnectionLoss; watches stand.
	Disconnected
	// Connected again within the session.
	Connected
	// Expired: ephemeral nodes and watches are gone. The store has a new session once Connected follows.
	Expired
)

func (t EventType) String() string {
	names := [...]string{"", "created", "deleted", "data changed", "children changed", "disconnected", "connected", "expired"}
	if int(t) < len(names) && t > 0 {
		return names[t]
	}
	return "unknown event"
}

// Event is a watch that went off, or news of the session.
type Event struct {
	Type EventType
	Path string
}

// Store is a tree of nodes with ZooKeeper's semantics. All methods must be called on the loop that owns the store; every
// callback runs there, later, never inside the call, in the order of the calls. An event caused by a change is delivered
// before the answer to the change, and before any answer that shows it.
type Store interface {
	// Do applies ops, all or none. done gets a Result for each op, also when refused; err is nil or the first refused
	// operation's. OutcomeOf(err) tells whether nothing happened or it is not known.
	Do(ops []Op, done func(results []Result, err error))
	// Get reads a node; watch arms a data watch if there is one.
	Get(path string, watch bool, done func(data []byte, st Stat, err error))
	// Exists asks for a node; watch arms a watch for its creation, change or deletion, be it there or not.
	Exists(path string, watch bool, done func(st Stat, err error))
	// Children lists the names of a node's children, sorted; watch arms a child watch if the node exists.
	Children(path string, watch bool, done func(names []string, st Stat, err error))
	// Events sets who is told of watches and of the session; there is one such listener.
	Events(fn func(Event))
	// Session is the session that owns what we create as ephemeral.
	Session() SessionID
}

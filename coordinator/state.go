package coordinator

// State is a group's state. The zero value is Empty.
type State uint8

// The states of a group, by Kafka's names.
const (
	Empty State = iota
	PreparingRebalance
	CompletingRebalance
	Stable
	Dead
)

// States is the number of states.
const States = 5

var stateNames = [States]string{"Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"}

func (s State) String() string { return stateNames[s] }

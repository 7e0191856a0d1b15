package ring

// Kernel runs loops on io_uring.
type Kernel struct {
	loops []Loop
}

// New checks that the kernel gives what is needed and makes the loops; *Refused says what it does not.
func New(o Options) (*Kernel, error) {
	return nil, &Refused{What: "io_uring", Cause: "not built yet", Cure: "wait"}
}

// Loops are the loops, by ID.
func (k *Kernel) Loops() []Loop { return k.loops }

// Run runs the loops, calls start on loop 0 once all of them turn, and returns after Stop.
func (k *Kernel) Run(start func()) error { return nil }

// Stop makes Run return; any goroutine may call it.
func (k *Kernel) Stop() {}

// Probe looks at what the kernel and the log dirs give.
func (k *Kernel) Probe() []Finding { return nil }

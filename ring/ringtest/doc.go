// Package ringtest is what ring's door promises, as tests: the kernel's loops and the simulated ones run the same suite, so
// that what holds in simulation holds in production.
//
// The suite's code stands outside the loops. It puts work onto a loop as a Task (World.do), waits for it, and
// plays the network's other side through Peers.
package ringtest

// Package systemd installs the finished package on a machine that systemd runs, and looks at the service from outside: that a
// start waits for the broker, what a crash, a frozen process and a stuck loop lead to, what the journal says, what the hardening
// lets through. It has tests only; box makes the machine. They need root, as the service manager does.
package systemd

// Package systemd tells the service manager how the broker is, over the socket that it names (sd_notify(3)), and holds the files
// of the service: the unit, its user, its settings and the package.
//
// It is not for knowing how the broker is: that is told to a Keeper, which passes it on from a goroutine of its own, so that
// nobody waits for the manager. Where no manager asks (NOTIFY_SOCKET is not set) nothing is sent.
//
// Promises:
//   - READY=1 is sent when the broker serves, not before; STOPPING=1 when it has begun to stop.
//   - While it starts or stops, the manager is asked for more time as long as the loops turn and the work goes on.
//   - The watchdog is told that all is well only after every loop has just turned. A loop that is stuck is not covered up.
package systemd

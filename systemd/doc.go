// Package systemd tells the service manager how the broker is.
package systemd

// Package ring is the only door to the kernel: network, disk and clock, driven through io_uring.
package ring

package main

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"kring/daemon/config"
)

// The kernel takes a killed broker's ring down a little after the process is gone, and with it the listening socket that the ring
// still accepts on: a supervisor that restarts at once would find the port in use.
const (
	portPatience = 2 * time.Second
	portStep     = 5 * time.Millisecond
)

// portsFree tells, before anything is touched, whether every address can be listened on, and waits a little for one that is in use.
func portsFree(listeners []config.Listener) error {
	for deadline := time.Now().Add(portPatience); ; time.Sleep(portStep) {
		err := firstTaken(listeners)
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(deadline) {
			return err
		}
	}
}

func firstTaken(listeners []config.Listener) error {
	for _, l := range listeners {
		bound, err := net.Listen("tcp", hostPort(l))
		if err != nil {
			var op *net.OpError
			if errors.As(err, &op) {
				err = op.Err
			}
			cure := ""
			switch {
			case errors.Is(err, syscall.EADDRINUSE):
				cure = "; stop what listens there (ss -ltnp names it) or set listeners"
			case errors.Is(err, syscall.EADDRNOTAVAIL):
				cure = "; set listeners to an address of this machine (ip address shows them), advertised.listeners to what clients connect to"
			case errors.Is(err, syscall.EACCES):
				cure = "; ports below net.ipv4.ip_unprivileged_port_start need CAP_NET_BIND_SERVICE: grant it or set listeners"
			}
			return &failure{exitAddress, fmt.Errorf("listener %s://%s: %w%s", l.Name, hostPort(l), err, cure)}
		}
		bound.Close()
	}
	return nil
}

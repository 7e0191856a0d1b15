package ring

import (
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

const backlog = 1024

// listener is a bound socket.
type listener struct {
	l      *loop
	fd     int
	addr   netip.AddrPort
	fn     func(Socket, netip.AddrPort)
	slot   uint32
	retry  Timer
	closed bool
}

// Listen binds host:port; an empty host is every address.
func (l *loop) Listen(address string) (Listener, error) {
	tcp, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, err
	}
	var sa unix.Sockaddr
	family := unix.AF_INET6
	if ip := tcp.IP.To4(); ip != nil {
		family, sa = unix.AF_INET, &unix.SockaddrInet4{Port: tcp.Port, Addr: [4]byte(ip)}
	} else {
		a := &unix.SockaddrInet6{Port: tcp.Port}
		if tcp.IP != nil {
			a.Addr = [16]byte(tcp.IP.To16())
		}
		sa = a
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == unix.EAFNOSUPPORT && tcp.IP == nil {
		family, sa = unix.AF_INET, &unix.SockaddrInet4{Port: tcp.Port}
		fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if family == unix.AF_INET6 && tcp.IP == nil {
		unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
	}
	if n := l.k.receiveBuffer; n > 0 {
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, n) // inherited; the window's scale is fixed at the handshake
	}
	if err = unix.Bind(fd, sa); err == nil {
		err = unix.Listen(fd, backlog)
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	li := &listener{l: l, fd: fd}
	if name, err := unix.Getsockname(fd); err == nil {
		li.addr = addrPort(name)
	}
	li.retry.Fire = func(*Timer) { li.arm() }
	l.listeners = append(l.listeners, li)
	return li, nil
}

func addrPort(sa unix.Sockaddr) netip.AddrPort {
	switch a := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port))
	}
	return netip.AddrPort{}
}

// Accept calls fn for each connection from now on.
func (l *loop) Accept(ln Listener, fn func(Socket, netip.AddrPort)) {
	li := ln.(*listener)
	li.fn = fn
	li.arm()
}

func (li *listener) arm() {
	if li.closed || li.slot != 0 {
		return
	}
	i, s := li.l.newSlot()
	s.kind, s.lis = kindAccept, li
	li.slot = i
	e := li.l.r.next()
	e.op, e.fd, e.ioprio, e.user = opAccept, int32(li.fd), acceptMultishot, li.l.user(i)
	e.opflags = unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK
}

func (li *listener) accepted(i uint32, c cqe) {
	l := li.l
	if c.flags&cqeMore == 0 {
		l.drop(i)
		li.slot = 0
	}
	switch {
	case c.res >= 0 && li.closed:
		unix.Close(int(c.res))
	case c.res >= 0:
		l.stats.Accepted++
		fd := int(c.res)
		peer := netip.AddrPort{}
		if sa, err := unix.Getpeername(fd); err == nil {
			peer = addrPort(sa)
		}
		li.fn(Socket(fd), peer)
	case errnoOf(c.res) != unix.ECANCELED && !li.closed:
		l.log.Warn("accept failed", "listener", li.addr, "error", errnoOf(c.res))
	}
	if li.slot != 0 {
		return
	}
	if li.closed {
		unix.Close(li.fd)
	} else if c.res < 0 {
		l.wheel.After(100*Tick, &li.retry) // out of descriptors, most likely: the peers wait
	} else {
		li.arm()
	}
}

func (li *listener) Addr() netip.AddrPort { return li.addr }

// Close stops accepting.
func (li *listener) Close() {
	if li.closed {
		return
	}
	li.closed = true
	li.l.wheel.Cancel(&li.retry)
	if li.slot != 0 {
		li.l.cancel(li.slot)
	} else {
		unix.Close(li.fd)
	}
}

// Attach makes s a connection of this loop.
func (l *loop) Attach(s Socket, r Receiver) Conn {
	c := &conn{l: l, fd: int(s), r: r}
	c.asm.Alloc = l.Alloc
	if sa, err := unix.Getpeername(c.fd); err == nil {
		c.peer = addrPort(sa)
	}
	if sa, err := unix.Getsockname(c.fd); err == nil {
		c.local = addrPort(sa)
	}
	unix.SetsockoptInt(c.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if n := l.k.sendBuffer; n > 0 {
		unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_SNDBUF, n)
	}
	unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1) // a peer that is gone without a word is found in hours, as by Kafka
	c.next = l.conns
	if c.next != nil {
		c.next.prev = c
	}
	l.conns = c
	l.stats.Connections++
	c.bye.Done = func(*Op) { c.r.Closed(c.err) }
	c.again.Done = func(*Op) { c.goOn() }
	c.armReceive()
	return c
}

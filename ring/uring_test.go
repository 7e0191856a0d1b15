package ring

import (
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Each test here is one thing the loops rely on the kernel for.

// testRing is a ring of the test's own, on its own thread.
func testRing(t testing.TB) *uring {
	t.Helper()
	k := &Kernel{paths: map[string]writePath{}}
	if err := k.examine("pwrite"); err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	r, err := openURing(64, 256, k.ringFlags)
	if err != nil {
		t.Fatal(refusedSetup(err))
	}
	t.Cleanup(func() {
		r.close()
		runtime.UnlockOSThread()
	})
	return r
}

// completion waits for one.
func (r *uring) completion(t testing.TB) cqe {
	t.Helper()
	for end := time.Now().Add(patience); r.pending() == 0; {
		if time.Now().After(end) {
			t.Fatal("no completion came")
		}
		r.enter(1, int64(10*time.Millisecond))
	}
	c := r.cqes[*r.cqHead&r.cqMask]
	r.seen()
	return c
}

// none checks that no completion comes for a while.
func (r *uring) none(t testing.TB) {
	t.Helper()
	r.enter(1, int64(20*time.Millisecond))
	if r.pending() > 0 {
		c := r.cqes[*r.cqHead&r.cqMask]
		t.Fatalf("a completion came: user %d res %d flags %x", c.user, c.res, c.flags)
	}
}

// pair is a TCP connection: a descriptor as Accept makes them, and the peer.
func pair(t testing.TB) (int, *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	peer, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	f, err := c.(*net.TCPConn).File()
	c.Close()
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Dup(int(f.Fd()))
	f.Close()
	if err != nil {
		t.Fatal(err)
	}
	unix.SetNonblock(fd, true)
	t.Cleanup(func() { unix.Close(fd); peer.Close() })
	return fd, peer.(*net.TCPConn)
}

func (r *uring) recv(fd int, b []byte, flags uint32, user uint64) {
	e := r.next()
	e.op, e.fd, e.addr, e.len, e.opflags, e.user = opRecv, int32(fd), addr(b), uint32(len(b)), flags, user
}

func testFile(t testing.TB, content []byte) *os.File {
	t.Helper()
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestShortLinkedReadIsReportedAndTheSendBehindItIsNot(t *testing.T) {
	r := testRing(t)
	fd, peer := pair(t)
	f := testFile(t, []byte("short"))
	b := mapAnon(pageSize)
	for i, n := range []uint32{5, 10, 5} {
		e := r.next()
		e.op, e.fd, e.addr, e.len, e.flags, e.user = opRead, int32(f.Fd()), addr(b), n, sqeIOLink|sqeCQESkipSuccess, uint64(i+1)
	}
	e := r.next()
	e.op, e.fd, e.addr, e.len, e.user = opSend, int32(fd), addr(b), 20, 9
	if c := r.completion(t); c.user != 2 || c.res != 5 {
		t.Errorf("user %d res %d, want the second read with 5", c.user, c.res)
	}
	r.none(t)
	unix.Shutdown(fd, unix.SHUT_WR)
	if got, _ := io.ReadAll(peer); len(got) != 0 {
		t.Errorf("%d bytes were sent behind a short read", len(got))
	}
}

func TestWholeLinkedReadsLeaveOneCompletion(t *testing.T) {
	r := testRing(t)
	fd, peer := pair(t)
	f := testFile(t, []byte("hello world"))
	b := mapAnon(pageSize)
	for i := range 2 {
		e := r.next()
		e.op, e.fd, e.off, e.addr, e.len = opRead, int32(f.Fd()), uint64(i*6), addr(b)+uint64(i*6), uint32(6-i)
		e.flags, e.user = sqeIOLink|sqeCQESkipSuccess, 1
	}
	e := r.next()
	e.op, e.fd, e.addr, e.len, e.user = opSend, int32(fd), addr(b), 11, 9
	if c := r.completion(t); c.user != 9 || c.res != 11 {
		t.Errorf("user %d res %d", c.user, c.res)
	}
	r.none(t)
	got := make([]byte, 11)
	if io.ReadFull(peer, got); string(got) != "hello world" {
		t.Errorf("sent %q", got)
	}
}

func TestVectorsAreReadBeforeEnterReturns(t *testing.T) {
	r := testRing(t)
	fd, peer := pair(t)
	want := random(8<<20, 1) // more than the socket takes at once
	vecs := r.iovecs(2)
	vecs[0], vecs[1] = vec(want[:3<<20]), vec(want[3<<20:])
	e := r.next()
	e.op, e.fd, e.len, e.opflags, e.user = opSendmsg, int32(fd), 1, unix.MSG_WAITALL|unix.MSG_NOSIGNAL, 1
	e.addr = header(r, vecs)
	r.enter(0, 0)
	clear(r.arena.mem)
	result := make(chan []byte)
	go func() {
		got := make([]byte, len(want))
		io.ReadFull(peer, got)
		result <- got
	}()
	done := int64(0)
	for done < int64(len(want)) {
		c := r.completion(t)
		if c.res <= 0 {
			t.Fatal("send:", errnoOf(c.res))
		}
		if done += int64(c.res); done < int64(len(want)) {
			e := r.next()
			e.op, e.fd, e.addr, e.len, e.opflags = opSend, int32(fd), addr(want[done:]), uint32(int64(len(want))-done), unix.MSG_WAITALL
		}
	}
	if !bytes.Equal(<-result, want) {
		t.Error("other bytes came than were sent")
	}
}

func TestReceiveIntoPiecesEndsWithENOBUFSAndLosesNothing(t *testing.T) {
	r := testRing(t)
	fd, peer := pair(t)
	var p pieces
	if e := p.register(r); e != 0 {
		t.Fatal(e)
	}
	arm := func() {
		e := r.next()
		e.op, e.fd, e.ioprio, e.flags, e.user = opRecv, int32(fd), recvMultishot, sqeBufferSelect, 1
	}
	for i := range p.bufs {
		p.bufs[i] = NewBuf(mapAnon(pieceSize), func(*Buf) {})
		p.bufs[i].whole = p.bufs[i].B
	}
	p.give(3)
	p.publish()
	want := random(3*pieceSize, 2)
	go peer.Write(want)
	arm()
	var got []byte
	ended := 0
	for len(got) < len(want) {
		c := r.completion(t)
		if c.res > 0 {
			id := uint16(c.flags >> cqeBufferShift)
			got = append(got, p.bufs[id].B[:c.res]...)
		} else if errnoOf(c.res) != unix.ENOBUFS || c.flags&cqeMore != 0 {
			t.Fatal(errnoOf(c.res), c.flags)
		}
		if c.flags&cqeMore == 0 {
			ended++
			p.give(uint16(ended))
			p.publish()
			arm()
		}
	}
	if ended == 0 || !bytes.Equal(got, want) {
		t.Errorf("ended %d times; the same bytes: %v", ended, bytes.Equal(got, want))
	}
}

// onePiece gives the kernel a single piece.
func onePiece(r *uring) {
	var p pieces
	p.register(r)
	p.bufs[0] = &Buf{whole: mapAnon(pieceSize)}
	p.give(0)
	p.publish()
}

func TestCancelledMultishotReceiveEndsOnce(t *testing.T) {
	r := testRing(t)
	fd, _ := pair(t)
	onePiece(r)
	e := r.next()
	e.op, e.fd, e.ioprio, e.flags, e.user = opRecv, int32(fd), recvMultishot, sqeBufferSelect, 1
	r.enter(0, 0)
	e = r.next()
	e.op, e.fd, e.addr, e.flags = opAsyncCancel, -1, 1, sqeCQESkipSuccess
	if c := r.completion(t); errnoOf(c.res) != unix.ECANCELED || c.flags&cqeMore != 0 {
		t.Error(errnoOf(c.res), c.flags)
	}
	r.none(t)
	e = r.next()
	e.op, e.fd, e.addr, e.flags, e.user = opAsyncCancel, -1, 1, sqeCQESkipSuccess, 7
	if c := r.completion(t); c.user != 7 || errnoOf(c.res) != unix.ENOENT {
		t.Error("cancelling what has ended:", c.user, errnoOf(c.res))
	}
}

func TestShutdownEndsReceiveAndPoll(t *testing.T) {
	r := testRing(t)
	fd, _ := pair(t)
	onePiece(r)
	e := r.next()
	e.op, e.fd, e.ioprio, e.flags, e.user = opRecv, int32(fd), recvMultishot, sqeBufferSelect, 1
	for { // fill the socket, so that the poll waits
		if _, err := unix.Write(fd, make([]byte, 1<<20)); err != nil {
			break
		}
	}
	e = r.next()
	e.op, e.fd, e.opflags, e.user = opPollAdd, int32(fd), unix.POLLOUT, 2
	r.none(t)
	unix.Shutdown(fd, unix.SHUT_RDWR)
	seen := map[uint64]bool{}
	for range 2 {
		c := r.completion(t)
		seen[c.user] = true
		if c.user == 1 && (c.res != 0 || c.flags&cqeMore != 0) {
			t.Error("receive:", c.res, c.flags)
		}
	}
	if !seen[1] || !seen[2] {
		t.Error("ended:", seen)
	}
}

func TestReceiveWaitsForAllAndACancelKeepsWhatCame(t *testing.T) {
	r := testRing(t)
	fd, peer := pair(t)
	b := mapAnon(1 << 20)
	r.recv(fd, b[:100], unix.MSG_WAITALL, 1)
	peer.Write([]byte("12345"))
	r.none(t)
	peer.Write(make([]byte, 95))
	if c := r.completion(t); c.res != 100 || string(b[:5]) != "12345" {
		t.Error("res", c.res)
	}
	r.recv(fd, b[:100], unix.MSG_WAITALL, 2)
	peer.Write([]byte("abcdefg"))
	r.none(t)
	e := r.next()
	e.op, e.fd, e.addr, e.flags = opAsyncCancel, -1, 2, sqeCQESkipSuccess
	if c := r.completion(t); c.res != 7 || string(b[:7]) != "abcdefg" {
		t.Error("cancelled with 7 bytes received:", c.res)
	}
}

func TestSendfileToAFullSocketDoesNotBlockAndPollTellsWhenItGoesOn(t *testing.T) {
	r := testRing(t)
	fd, peer := pair(t)
	f := testFile(t, make([]byte, 16<<20))
	var off int64
	for {
		n, err := unix.Sendfile(fd, int(f.Fd()), &off, 16<<20)
		if err == unix.EAGAIN {
			break
		}
		if err != nil || n == 0 {
			t.Fatal("sendfile:", n, err)
		}
	}
	if off >= 16<<20 {
		t.Fatal("the socket took 16 MiB")
	}
	e := r.next()
	e.op, e.fd, e.opflags, e.user = opPollAdd, int32(fd), unix.POLLOUT, 1
	r.none(t)
	go io.Copy(io.Discard, peer)
	if c := r.completion(t); c.res&unix.POLLOUT == 0 {
		t.Error("poll:", c.res)
	}
	if n, err := unix.Sendfile(fd, int(f.Fd()), &off, 16<<20); n <= 0 || err != nil {
		t.Error("sendfile after poll:", n, err)
	}
}

func TestRawWaitEndsWithItsTime(t *testing.T) {
	r := testRing(t)
	begin := time.Now()
	var e unix.Errno
	for e = unix.EINTR; e == unix.EINTR; {
		e = r.enter(1, int64(5*time.Millisecond))
	}
	if took := time.Since(begin); e != unix.ETIME || took < 5*time.Millisecond || took > patience {
		t.Error(e, took)
	}
}

func TestEventfdEndsARead(t *testing.T) {
	r := testRing(t)
	fd, err := unix.Eventfd(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	b := mapAnon(pageSize)
	e := r.next()
	e.op, e.fd, e.addr, e.len, e.user = opRead, int32(fd), addr(b), 8, 1
	r.none(t)
	go unix.Write(fd, one)
	if c := r.completion(t); c.res != 8 {
		t.Error(c.res)
	}
}

func TestCompletionsBeyondTheQueueAreKept(t *testing.T) {
	r := testRing(t)
	const n = 2000 // the queue holds 256
	for i := range uint64(n) {
		e := r.next()
		e.op, e.user = opNop, i+1
	}
	r.flush()
	seen := map[uint64]bool{}
	for range n {
		seen[r.completion(t).user] = true
	}
	if len(seen) != n {
		t.Errorf("%d of %d completions", len(seen), n)
	}
}

func TestResidencyIsToldByBothWays(t *testing.T) {
	f := testFile(t, make([]byte, 4<<20))
	f.Sync()
	l := &loop{eventBuf: mapAnon(pageSize)}
	file := &file{l: l, fd: int(f.Fd())}
	for _, sampled := range []bool{false, true} {
		l.noCachestat = sampled
		file.readAhead(0, 4<<20)
		if !file.resident(l, 100, 4<<20-100) {
			t.Errorf("sampled %v: what was just read is not in memory", sampled)
		}
		unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
		l.noCachestat = sampled
		if file.resident(l, 1<<20, 1<<20) {
			t.Logf("sampled %v: the file system kept the pages (tmpfs does)", sampled)
			if l.noCachestat == sampled && !onTmpfs(f) {
				t.Errorf("sampled %v: dropped pages are told to be in memory", sampled)
			}
		}
		file.readAhead(1<<20, 1<<20)
		if !file.resident(l, 1<<20, 1<<20) {
			t.Errorf("sampled %v: not in memory after reading ahead", sampled)
		}
	}
}

func onTmpfs(f *os.File) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(int(f.Fd()), &st) == nil && (st.Type == unix.TMPFS_MAGIC || st.Type == unix.RAMFS_MAGIC)
}

func TestEntryIsAsTheKernelLaysItOut(t *testing.T) {
	if unsafe.Sizeof(sqe{}) != 64 || unsafe.Sizeof(cqe{}) != 16 || unsafe.Sizeof(uringParams{}) != 120 || unsafe.Sizeof(getEventsArg{}) != 24 ||
		unsafe.Sizeof(bufReg{}) != 40 || unsafe.Sizeof(bufRingEntry{}) != 16 || msghdrSize != 56 {
		t.Error("a structure has the wrong size")
	}
}

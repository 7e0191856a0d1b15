package conformance

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"kring/conformance/stage"
)

// TestFewDescriptors gives a broker fewer file descriptors than it has segments, then more connections than are left: those
// that are in are served, nothing spins or ends, and when they go everybody else gets in.
func TestFewDescriptors(t *testing.T) {
	const limit, partitions = 1024, 500
	wrapper := filepath.Join(t.TempDir(), "kring")
	script := fmt.Sprintf("#!/bin/sh\nexec prlimit --nofile=%d -- '%s' \"$@\"\n", limit, stage.Kring(t))
	if err := os.WriteFile(wrapper, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KRING", wrapper)
	b := start(t, 2, "log.segment.bytes=100000")
	if !strings.Contains(b.log.String(), "few file descriptors") {
		t.Error("the start does not say that descriptors are few")
	}
	b.create("t", partitions)
	w := newWriter(b, "t")
	for p := range int32(partitions) {
		w.partition = p
		if err := w.write(100); err != nil {
			t.Fatalf("partition %d: %v", p, err)
		}
	}
	in := b.dial() // was there before the crowd
	before := b.processor()
	var crowd []net.Conn
	for range 2 * limit {
		c, err := net.DialTimeout("tcp", b.addr, 5*time.Second)
		if err != nil {
			break // the queue of the listener is full
		}
		crowd = append(crowd, c)
	}
	for range 50 {
		if _, err := roundTrip(in, encode(kmsg.NewPtrApiVersionsRequest())); err != nil {
			t.Fatalf("a connection that is in is not served: %v", err)
		}
	}
	w.partition = 0
	for range 300 { // rolls
		if err := w.write(1000); err != nil {
			t.Fatalf("writing beside a crowd: %v", err)
		}
	}
	if used := b.processor() - before; used > 3*time.Second {
		t.Errorf("the broker needed %v", used)
	}
	for _, c := range crowd {
		c.Close()
	}
	if _, err := roundTrip(b.dial(), encode(kmsg.NewPtrApiVersionsRequest())); err != nil {
		t.Errorf("when the crowd has gone nobody gets in: %v", err)
	}
	w.check("at the end")
}

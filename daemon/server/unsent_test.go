package server_test

import (
	"testing"
	"time"

	"kring/daemon/server"
)

// Small requests with large answers, from a peer that reads none: memory must hold no more than the bound and one answer.
func TestUnreadAnswersAreBounded(t *testing.T) {
	const answer, bound = 1 << 20, 2 << 20
	b := setUp(t, server.Options{Pipeline: 64, UnsentBytes: bound}, 10, 10)
	big := make([]byte, answer)
	most := int64(0)
	b.serve = func(r *server.Request) {
		r.Reply(append(r.Begin(len(big)), big...))
		most = max(most, b.loop.InUse())
	}
	c := b.w.Dial(addr)
	c.Pause()
	for i := range int32(64) {
		c.Send(frame(i, "x"))
	}
	b.w.RunFor(5 * time.Second)
	if most > bound+2*answer {
		t.Errorf("%d bytes of answers nobody reads were kept", most)
	}
	c.Resume()
	for i := range int32(64) {
		if id, _ := b.answer(c); id != i {
			t.Fatalf("answer %d where %d was due", id, i)
		}
	}
	b.done()
}

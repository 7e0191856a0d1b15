package coordinator

import (
	"fmt"
	"testing"
	"time"
)

// TestManyProtocolsAreKept in a time that grows with their number, not with its square: the loop serves nobody else meanwhile.
func TestManyProtocolsAreKept(t *testing.T) {
	const names = 200_000
	protocols := make([]Protocol, 0, 2*names)
	for i := range 2 * names {
		protocols = append(protocols, Protocol{Name: fmt.Sprintf("%06d", i%names), Metadata: []byte{byte(i / names)}})
	}
	began := time.Now()
	kept := keepProtocols(protocols[:1000]) // to know this machine
	few := max(time.Since(began), time.Millisecond)
	began = time.Now()
	if kept = keepProtocols(protocols); len(kept) != names || kept[names-1].Metadata[0] != 0 {
		t.Errorf("%d protocols are kept", len(kept))
	}
	if took := time.Since(began); took > 10_000*few {
		t.Errorf("%d protocols take %v, 1000 %v", len(protocols), took, few)
	}
}

package api

import (
	"reflect"
	"testing"
)

func TestRequestsAreChargedWhatTheyTake(t *testing.T) {
	for _, tt := range []struct {
		of      any
		charged uintptr
	}{{produced{}, producedBytes}, {fetched{}, fetchedBytes}} {
		if size := reflect.TypeOf(tt.of).Size(); size > tt.charged || size < tt.charged/2 {
			t.Errorf("%T takes %d bytes and is charged %d", tt.of, size, tt.charged)
		}
	}
}

package ring

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

// These tests show the order of two steps on one goroutine: a copy from or to memory that
// is not there panics, and what the other side then sees has come before the copy.

// unmapped returns n items in memory that can't be accessed.
func unmapped(n int) (items []item) {
	*(*struct {
		first    *item
		len, cap int
	})(unsafe.Pointer(&items)) = struct {
		first    *item
		len, cap int
	}{nil, n, n}
	return items
}

func TestAReservedValueIsPublishedWhenItsCellIsFilled(t *testing.T) {
	for name, put := range map[string]func(*Reserved[item]){
		"a batch": func(r *Reserved[item]) { r.PutAll(unmapped(3)) },
	} {
		r := NewReserved[item](8)
		assert.Panics(t, func() { put(r) }, name)
		assert.Zero(t, r.Ready(1), name)
	}
}

func TestTheOneProducerPublishesAfterTheCopy(t *testing.T) {
	for name, push := range map[string]func(*SPSC[item]){
		"a value": func(r *SPSC[item]) { r.Push(nil) },
		"a batch": func(r *SPSC[item]) { r.PushAll(unmapped(3)) },
	} {
		r := NewSPSC[item](8)
		assert.Panics(t, func() { push(r) }, name)
		assert.True(t, r.Empty(), name)
	}
}

func TestPlacesAreGivenBackAfterTheCopy(t *testing.T) {
	rings := map[string]func() (free func() int, popAll func([]item) int){
		"SPSC": func() (func() int, func([]item) int) {
			r := NewSPSC[item](8)
			r.PushAll(make([]item, 5))
			return r.Free, r.PopAll
		},
		"MPSC": func() (func() int, func([]item) int) {
			r := NewMPSC[item](8)
			r.PushAll(make([]item, 5))
			return func() int { return int(r.credit.Load() + r.limit - r.ring.Tail()) }, r.PopAll
		},
	}
	for name, ring := range rings {
		free, popAll := ring()
		before := free()
		assert.Panics(t, func() { popAll(unmapped(3)) }, name)
		assert.Equal(t, before, free(), name)
	}
}

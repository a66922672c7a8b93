package ep

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"

	"godat/internal/owner"
)

// Where its parts lie in cache lines is a matter of the mailbox, with which an endpoint begins.
func TestAnEndpointBeginsWithItsMailbox(t *testing.T) {
	const header = 8 // the allocator's, before an object of over 512 bytes that has pointers
	var e Endpoint
	assert.Zero(t, unsafe.Offsetof(e.box))
	if unsafe.Sizeof(uintptr(0)) == 8 && unsafe.Sizeof(owner.Tag{}) == 0 { // as in most builds
		assert.LessOrEqual(t, unsafe.Sizeof(e)+header, uintptr(1280), "the next size that the allocator has is 1408")
	}
}

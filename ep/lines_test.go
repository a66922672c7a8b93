package ep

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"

	"godat/internal/owner"
)

// Many active endpoints do not fit into the caches, so a post takes as long as it
// touches cache lines.
func TestThePartsOfAnEndpointThatPostsTouchBeginCacheLines(t *testing.T) {
	const (
		line   = 64
		header = 8 // the allocator's, before an object of over 512 bytes that has pointers
	)
	if unsafe.Sizeof(uintptr(0)) != 8 || unsafe.Sizeof(owner.Tag{}) != 0 {
		return // the words are shorter, or the tags of race builds lie between them
	}
	var e Endpoint
	b := unsafe.Offsetof(e.box) + header
	for name, at := range map[string]uintptr{
		"what the token's holder writes": b + unsafe.Offsetof(e.box.token),
		"the queue of requests":          b + unsafe.Offsetof(e.box.requests),
		"the queue of receives":          b + unsafe.Offsetof(e.box.recvs),
		"what the holder writes of it":   b + unsafe.Offsetof(e.box.recvs) + unsafe.Offsetof(e.box.recvs.next),
		"what its completer writes":      b + unsafe.Offsetof(e.box.recvs) + unsafe.Offsetof(e.box.recvs.retired),
	} {
		assert.Zero(t, at%line, name)
	}
	assert.Less(t, unsafe.Offsetof(e.box.recvs.prompt), uintptr(line))

	var s slot
	assert.EqualValues(t, line, unsafe.Sizeof(s))
	assert.LessOrEqual(t, unsafe.Offsetof(s.imm)+unsafe.Sizeof(s.imm)+header, uintptr(line))
	assert.LessOrEqual(t, unsafe.Sizeof(e)+header, uintptr(1280), "the next size that the allocator has is 1408")
}

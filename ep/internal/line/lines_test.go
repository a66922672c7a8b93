package line

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"

	"godat/internal/owner"
)

// Many active endpoints do not fit into the caches, so a post takes as long as it
// touches cache lines.
func TestThePartsOfAMailboxThatPostsTouchBeginCacheLines(t *testing.T) {
	const (
		line   = 64
		header = 8 // the allocator's, before an object of over 512 bytes that has pointers and begins with a mailbox
	)
	if unsafe.Sizeof(uintptr(0)) != 8 || unsafe.Sizeof(owner.Tag{}) != 0 {
		return // the words are shorter, or the tags of race builds lie between them
	}
	var b Mailbox
	for name, at := range map[string]uintptr{
		"what the token's holder writes": header + unsafe.Offsetof(b.Token),
		"the queue of requests":          header + unsafe.Offsetof(b.Requests),
		"the queue of receives":          header + unsafe.Offsetof(b.Recvs),
		"what the holder writes of it":   header + unsafe.Offsetof(b.Recvs) + unsafe.Offsetof(b.Recvs.next),
		"what its completer writes":      header + unsafe.Offsetof(b.Recvs) + unsafe.Offsetof(b.Recvs.retired),
	} {
		assert.Zero(t, at%line, name)
	}
	assert.Less(t, unsafe.Offsetof(b.Recvs.prompt), uintptr(line))

	var s slot
	assert.EqualValues(t, line, unsafe.Sizeof(s))
	assert.LessOrEqual(t, unsafe.Offsetof(s.imm)+unsafe.Sizeof(s.imm)+header, uintptr(line))
}

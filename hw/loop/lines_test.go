package loop

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"

	"godat/hw/internal/soft"
	"godat/internal/owner"
)

// Many active connections do not fit into the caches, so a post takes as long as it
// touches cache lines. Objects of up to 512 bytes begin on a line; the allocator puts 8
// bytes before longer ones that have pointers.
func TestAPlainRequestTouchesThreeLinesOfItsPipe(t *testing.T) {
	const line = soft.CacheLine
	if unsafe.Sizeof(uintptr(0)) != 8 || unsafe.Sizeof(owner.Tag{}) != 0 {
		return // the words are shorter, or the tags of race builds lie between them
	}
	var p pipe
	assert.LessOrEqual(t, unsafe.Sizeof(p), uintptr(512))
	assert.EqualValues(t, line, unsafe.Offsetof(p.token), "posters of receives read the line before it")
	dst := unsafe.Offsetof(p.exec) + unsafe.Offsetof(p.exec.dst)
	assert.LessOrEqual(t, dst+unsafe.Offsetof(p.exec.dst.wcs), uintptr(4*line))
	assert.GreaterOrEqual(t, unsafe.Offsetof(p.exec)+unsafe.Offsetof(p.exec.src.end), uintptr(line))

	var q recvQueue
	assert.EqualValues(t, line, unsafe.Offsetof(q.tail), "the consumer reads the line before it at each receive")
	assert.EqualValues(t, 2*line, unsafe.Sizeof(q))

	var qp queuePair
	assert.LessOrEqual(t, unsafe.Offsetof(qp.segments)+unsafe.Sizeof(qp.segments), uintptr(line))
}

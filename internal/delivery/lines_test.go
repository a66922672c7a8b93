package delivery

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

func TestWritersOfAQueueKeepOffEachOthersCacheLines(t *testing.T) {
	var q Queue
	lines := []uintptr{
		unsafe.Offsetof(q.kind), unsafe.Offsetof(q.route), // never written
		unsafe.Offsetof(q.reserved), unsafe.Offsetof(q.limit), // posters
		unsafe.Offsetof(q.done), unsafe.Offsetof(q.held), // completers
		unsafe.Offsetof(q.notify), unsafe.Offsetof(q.parked), // waking
		unsafe.Offsetof(q.cons), unsafe.Offsetof(q.turn), // consumer
	}
	for i := 0; i < len(lines); i += 2 {
		assert.Equal(t, lines[i]/64, lines[i+1]/64, i)
		if i > 0 {
			assert.Less(t, lines[i-1]/64, lines[i]/64, i)
		}
	}
}

package delivery

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

func TestWritersOfAQueueKeepOffEachOthersCacheLines(t *testing.T) {
	var q Queue
	consumer, turn := unsafe.Offsetof(q.consumer), unsafe.Offsetof(q.consumer)+unsafe.Offsetof(q.consumer.turn)
	places := unsafe.Offsetof(q.places)
	lines := []uintptr{
		unsafe.Offsetof(q.form), consumer + unsafe.Offsetof(q.consumer.ring), // never written
		consumer + unsafe.Offsetof(q.consumer.notice), consumer + unsafe.Offsetof(q.consumer.pollDevice), // waking
		turn + unsafe.Offsetof(q.consumer.turn.word), turn + unsafe.Offsetof(q.consumer.turn.next), // consumer
		places + unsafe.Offsetof(q.places.reserved), places + unsafe.Offsetof(q.places.limit), // posters
		places + unsafe.Offsetof(q.places.done), places + unsafe.Offsetof(q.places.unused), // completers
		unsafe.Offsetof(q.channel), // of a channel
	}
	for i := 0; i+1 < len(lines); i += 2 {
		assert.Equal(t, lines[i]/64, lines[i+1]/64, i)
		assert.Less(t, lines[i+1]/64, lines[i+2]/64, i)
	}
	assert.Zero(t, unsafe.Offsetof(Dispatcher{}.main))
	assert.Zero(t, unsafe.Offsetof(Route{}.queue))
	assert.Zero(t, unsafe.Offsetof(OneShot{}.queue))
}

//go:build linux || darwin

package iwarp

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/internal/soft"
	"godat/hw/iwarp/wire"
)

// The test makes a read into memory slow by a descriptor that blocks. The read is so large that
// the Go runtime is told of it.
func TestDeregisterWaitsForAReadIntoMemory(t *testing.T) {
	n := newNode(t, New(Config{}), noCRC)
	l := connections(n.peer())[0]
	defer l.recv.place.present.Leave()
	l.recv.in.ready(readSize)
	defer l.recv.in.drop()
	for _, ahead := range []bool{false, true} {
		for !freeUnderRead(t, n, l, ahead) {
			l.recv.inPlace.dead = false
		}
	}
}

func TestBehindALargePayloadThereIsRoomForTheNextHeaderOnly(t *testing.T) {
	r := &connections(newNode(t, New(Config{}), noCRC).peer())[0].recv
	r.in.ready(readSize)
	defer r.in.drop()
	r.inPlace.payload = aloneMin - 1
	assert.Len(t, r.inPlace.behind(), readSize)
	r.inPlace.payload = aloneMin
	assert.Len(t, r.inPlace.behind(), wire.MaxTrailerSize+wire.MaxFramedHeaderSize)
}

// freeUnderRead deregisters a region that is being read into. It returns false if the
// region was gone before the read looked it up.
func freeUnderRead(t *testing.T, n *node, l *connection, ahead bool) bool {
	const size = 1 << 20
	m, d := n.memory(size, hw.LocalWrite|hw.RemoteWrite), n.dev.(*device)
	l.recv.place.dst, l.recv.left, l.recv.inPlace.scratch = &soft.Cursor{SGL: []hw.SGE{m.sge(0, size)}, Need: hw.LocalWrite}, size, ahead
	if ahead {
		require.NoError(t, m.MR.(hw.Remapper).Remap(m.buf))
		l.recv.inPlace.h = wire.Header{Opcode: wire.OpWrite, STag: m.RKey(), TO: m.base, Last: true}
		require.NoError(t, l.recv.place.begin(&l.recv.inPlace.h, size))
	}
	var fds [2]int
	require.NoError(t, syscall.Pipe(fds[:]))
	defer func() { require.NoError(t, syscall.Close(fds[0])) }()
	read, freed := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(read)
		l.recv.own.Acquire()
		defer l.recv.own.Release()
		l.recv.inPlace.read(fds[0])
	}()
	key := m.RKey()
	require.Eventually(t, func() bool { return len(n.zone.(*soft.Zone).InProgress(nil, nil)) == 1 }, patience, tick, "the read is under way")
	go func() { freed <- m.Deregister() }()
	require.Eventually(t, func() bool { return d.Keys.Lookup(key).Size == 0 }, patience, tick, "the region is being freed")
	early := len(freed)
	_, err := syscall.Write(fds[1], []byte("into mem"))
	require.NoError(t, err)
	require.NoError(t, syscall.Close(fds[1])) // the race detector's build reads once more
	<-read
	require.NoError(t, <-freed)
	if l.recv.inPlace.dead {
		return false
	}
	assert.Zero(t, early, "it waited")
	assert.Equal(t, "into mem", string(m.buf[:8]))
	return true
}

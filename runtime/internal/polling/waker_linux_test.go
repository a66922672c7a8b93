package polling

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAParkedDelivererIsWokenOncePerBatchAndAnAwakeOneNever(t *testing.T) {
	w, err := newWaker()
	require.NoError(t, err)
	defer func() { require.NoError(t, w.close()) }()
	f := newDeliverer(nil, nil, new(poller), w, nil)
	a, b := &cqBinding{depth: 64}, &cqBinding{depth: 64, tag: 1}
	a.carryTo(f)
	b.carryTo(f)
	p := newPoller(newPolled(), Config{}, nil)
	p.bindings.Store(&[]*cqBinding{a, b})
	batch := wcs(0, 6)
	batch[2].CQ, batch[5].CQ = 1, 1

	f.parked.Store(1)
	for range 3 {
		p.distribute(batch)
	}
	w.wait()
	assert.EqualValues(t, 1, binary.NativeEndian.Uint64(w.buf[:]), "writes to the eventfd")
	p.distribute(batch)
	f.parked.Store(1)
	p.distribute(batch)
	w.wait()
	assert.EqualValues(t, 1, binary.NativeEndian.Uint64(w.buf[:]), "writes to the eventfd")
}

package runtime

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAParkedFeederIsWokenOncePerBatchAndAnAwakeOneNever(t *testing.T) {
	w, err := newWaker()
	require.NoError(t, err)
	defer func() { require.NoError(t, w.close()) }()
	f := newFeeder(nil, 0, nil, new(poller), w, nil)
	a, b := &lane{depth: 64}, &lane{depth: 64, tag: 1}
	a.carry(f)
	b.carry(f)
	p := newPoller(newPolled(), PollerConfig{}, nil)
	p.lanes.Store(&[]*lane{a, b})
	batch := wcs(0, 6)
	batch[2].CQ, batch[5].CQ = 1, 1

	f.parked.Store(1)
	for range 3 {
		p.hand(batch)
	}
	w.wait()
	assert.EqualValues(t, 1, binary.NativeEndian.Uint64(w.buf[:]), "writes to the eventfd")
	p.hand(batch)
	f.parked.Store(1)
	p.hand(batch)
	w.wait()
	assert.EqualValues(t, 1, binary.NativeEndian.Uint64(w.buf[:]), "writes to the eventfd")
}

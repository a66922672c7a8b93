//go:build !race

package runtime_test

import (
	"context"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	"godat/hw/event"
	dat "godat/runtime"
)

// idleBytes is the most memory of a connected endpoint of depth 16 on loop that does
// nothing, with its part of all tables, and with the stacks of all goroutines.
const idleBytes = 6 << 10

func TestAnIdleEndpointTakesNoMoreThan6KBAndNoGoroutine(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		return // pointers are shorter; the bound is for 64 bits
	}
	const pairs = 1000
	ctx := context.Background()
	ia, err := dat.Open(ctx, "loop")
	require.NoError(t, err)
	defer func() { require.NoError(t, ia.Close()) }()
	pz, err := ia.NewPZ()
	require.NoError(t, err)
	d, err := ia.NewDispatcher(evd.Config{QLen: 2 * pairs * 34})
	require.NoError(t, err)
	psp, err := ia.NewPSP(ep.PSPConfig{Dispatcher: d})
	require.NoError(t, err)
	next := func() event.Event {
		ev, _, err := d.Wait(ctx, 1)
		require.NoError(t, err)
		require.NoError(t, ev.Err())
		return ev
	}
	endpoint := func() *ep.Endpoint {
		attr := &ep.Attr{MaxRecvDTOs: 16, MaxRequestDTOs: 16}
		e, err := ia.NewEndpoint(ep.Config{PZ: pz, Recv: d, Request: d, Conn: d, Attr: attr})
		require.NoError(t, err)
		return e
	}
	before, goroutines := inUse(), runtime.NumGoroutine()
	for range pairs {
		require.NoError(t, endpoint().Connect(ep.ConnectConfig{Addr: ia.Attr().Address, Qual: psp.Qual()}))
		require.NoError(t, ep.RequestOf(next()).Accept(endpoint(), nil))
		next()
		next()
	}
	each := (inUse() - before) / (2 * pairs)
	t.Logf("%d bytes", each)
	assert.LessOrEqual(t, each, int64(idleBytes))
	assert.Less(t, runtime.NumGoroutine()-goroutines, pairs)
}

// inUse is the memory in use by objects that can be reached, and by stacks.
func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

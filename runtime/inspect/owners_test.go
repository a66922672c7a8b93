package inspect

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/mem"
	dat "godat/runtime"
	"godat/runtime/rpc"
	"godat/runtime/stream"
)

// owner finds one of the present page's.
func (r *rig) owner(name string) owner {
	r.t.Helper()
	var said struct{ Owners []owner }
	r.askFor("?format=json", &said)
	for _, o := range said.Owners {
		if o.Name == name {
			return o
		}
	}
	require.Failf(r.t, "no such owner", "%s in %v", name, said.Owners)
	return owner{}
}

func TestMemoryIsToldByItsOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, dat.ConnConfig{Depth: 4, Message: 1000})
		s, c := r.serve(rpc.Config{})
		pz, err := r.ia.NewPZ()
		require.NoError(t, err)
		pool, err := pz.NewBufferPool(mem.BufferPoolConfig{Count: 3, Size: 100})
		require.NoError(t, err)
		region, err := pz.Alloc(1<<20, hw.LocalRead)
		require.NoError(t, err)
		streams, err := stream.Listen(t.Context(), r.ia, ":0", stream.Config{})
		require.NoError(t, err)
		accepted := make(chan net.Conn, 1)
		go func() {
			c, err := streams.Accept()
			assert.NoError(t, err)
			accepted <- c
		}()
		near, err := (&stream.Dialer{IA: r.ia}).DialContext(t.Context(), "tcp", streams.Addr().String())
		require.NoError(t, err)
		far := <-accepted
		go func() {
			_, err := near.Write(make([]byte, 10000)) // for which both ends make room
			assert.NoError(t, err)
		}()
		_, err = io.ReadFull(far, make([]byte, 10000))
		require.NoError(t, err)
		synctest.Wait()
		all, err := r.ia.Snapshot()
		require.NoError(t, err)
		var sum uint64
		for _, o := range ownersOf(&all) {
			sum += o.Bytes
		}
		assert.EqualValues(t, all.Memory.Bytes, sum, "all memory has an owner")
		r.h.adapters[0].forget()
		assert.EqualValues(t, 3*128, r.owner(pool.String()).Bytes)
		assert.EqualValues(t, 3, r.owner(pool.String()).Buffers)
		assert.EqualValues(t, 1<<20, r.owner("regions of the program").Bytes, "the rest is no stream's")
		assert.NotZero(t, r.owner("streams").Bytes)
		assert.NotZero(t, r.owner("rpc server of Listener("+s.Addr()+")").Bytes)
		assert.NotZero(t, r.owner("rpc clients of "+s.Addr()).Bytes)
		assert.NotZero(t, r.owner("connections of "+r.ln.String()).Bytes)
		assert.Equal(t, 200, r.get("?show=memory").Code)
		require.NoError(t, near.Close())
		require.NoError(t, far.Close())
		require.NoError(t, streams.Close())
		require.NoError(t, region.Free())
		require.NoError(t, pool.Close())
		require.NoError(t, c.Close())
		require.NoError(t, s.Close())
		require.NoError(t, pz.Close())
	})
}

// lookEvery looks at the page for a while, and returns the kinds of troubles that it has said.
func (r *rig) lookEvery(pause, long time.Duration, do func(i int)) map[string]string {
	said := make(map[string]string)
	for i := range int(long / pause) {
		do(i)
		time.Sleep(pause)
		for _, t := range r.ask("?format=json").Troubles {
			said[t.Kind] = t.Name + ": " + t.Text
		}
	}
	return said
}

func TestWhatGrowsWithoutEndIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, pause := range []time.Duration{2 * time.Second, 15 * time.Second} {
			r := newRig(t, 0, dat.ConnConfig{})
			pz, err := r.ia.NewPZ()
			require.NoError(t, err)
			pool, err := pz.NewBufferPool(mem.BufferPoolConfig{Count: 1000, Size: 100})
			require.NoError(t, err)
			var out []*mem.Buffer
			var regions []*mem.LMR
			said := r.lookEvery(pause, 3*time.Minute, func(i int) {
				out = append(out, pool.Get())
				region, err := pz.Alloc(1<<20, hw.LocalRead)
				require.NoError(t, err)
				regions = append(regions, region)
			})
			assert.Contains(t, said["buffers out"], pool.String()+": this program takes buffers and gives too few back")
			assert.Contains(t, said["buffers out"], "the oldest for 2 min")
			assert.Contains(t, said["memory grows"], "regions of the program")
			said = r.lookEvery(pause, time.Minute, func(int) {})
			assert.NotContains(t, r.kinds(), "buffers out", "it has stopped: %v", said)
			assert.NotContains(t, r.kinds(), "memory grows")
			for i := range out {
				out[i].Put()
				require.NoError(t, regions[i].Free())
			}
			require.NoError(t, pool.Close())
			require.NoError(t, pz.Close())
			require.NoError(t, r.ln.Close())
		}
	})
}

func TestWhatComesAndGoesIsNoTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 0, dat.ConnConfig{})
		pz, err := r.ia.NewPZ()
		require.NoError(t, err)
		pool, err := pz.NewBufferPool(mem.BufferPoolConfig{Count: 1000, Size: 100})
		require.NoError(t, err)
		always := pool.Get() // a program may keep one for ever
		var out []*mem.Buffer
		said := r.lookEvery(2*time.Second, 6*time.Minute, func(i int) {
			out = append(out, pool.Get())
			if i%40 == 39 { // every 80 seconds
				for _, b := range out {
					b.Put()
				}
				out = nil
			}
		})
		assert.Empty(t, said)
		for _, b := range out {
			b.Put()
		}
		always.Put()
		require.NoError(t, pool.Close())
		require.NoError(t, pz.Close())
		require.NoError(t, r.ln.Close())
	})
}

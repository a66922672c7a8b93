package runtime

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/mem"
)

// A program whose peer goes has no reason to keep a list of its windows: they end with what
// they are bound to.
func TestTheCloseOfAConnectionFreesItsWindows(t *testing.T) {
	makers := map[string]func(c *Conn) (*mem.RMR, error){
		"of the endpoint": func(c *Conn) (*mem.RMR, error) { return c.Endpoint.NewRMR() },
		"of the zone":     func(c *Conn) (*mem.RMR, error) { return c.PZ().NewRMR() },
	}
	segments := map[string]func(t *testing.T, c *Conn) mem.Segment{
		"a region": func(t *testing.T, c *Conn) mem.Segment {
			memory, err := c.Alloc(64, hw.AllPrivileges)
			require.NoError(t, err)
			return memory.Segment(0, 64)
		},
		"a buffer": func(_ *testing.T, c *Conn) mem.Segment {
			b := c.Buffer()
			b.Resize(64)
			defer c.Release(b)
			return b.Segment()
		},
	}
	for of, window := range makers {
		for what, segment := range segments {
			t.Run(of+", bound to "+what, func(t *testing.T) {
				onEach(t, func(t *testing.T, ia *IA) {
					if !ia.Attr().Ops.Has(hw.OpBind) {
						return
					}
					l, client, server := both(t, ia, ConnConfig{})
					w, err := window(client)
					require.NoError(t, err)
					_, err = client.Endpoint.PostBind(1, hw.Default, w, mem.Binding{Segment: segment(t, client), Privileges: hw.RemoteRead})
					require.NoError(t, err)
					require.NoError(t, nextEvent(t, client.Events()).Err())
					require.NoError(t, server.Close())
					require.NoError(t, client.Close())
					_, err = w.Query()
					requireCode(t, err, hw.InvalidHandle, hw.HandleRMR)
					require.NoError(t, w.Free(), "again")
					require.NoError(t, l.Close())
					assert.Zero(t, ia.MemoryStats().Windows)
				})
			})
		}
	}
}

func TestAZoneThatConnectionsShareKeepsItsWindows(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		if !ia.Attr().Ops.Has(hw.OpBind) {
			return
		}
		pz, err := ia.NewPZ()
		require.NoError(t, err)
		l, client, server := both(t, ia, ConnConfig{PZ: pz})
		kept, err := pz.NewRMR()
		require.NoError(t, err)
		others, err := server.Endpoint.NewRMR()
		require.NoError(t, err)
		own, err := client.Endpoint.NewRMR()
		require.NoError(t, err)
		require.NoError(t, client.Close())
		_, err = own.Query()
		requireCode(t, err, hw.InvalidHandle, hw.HandleRMR)
		for _, w := range []*mem.RMR{kept, others} {
			_, err = w.Query()
			require.NoError(t, err)
		}
		require.NoError(t, l.Close())
		require.NoError(t, kept.Free())
		require.NoError(t, pz.Close())
	})
}

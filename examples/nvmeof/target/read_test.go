package target

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/host"
	"godat/examples/nvmeof/nvme"
	"godat/examples/nvmeof/store"
)

// gated is a Reader that tells a test of what the target asks.
type gated struct {
	store.Store
	asked chan *Read
}

func (g *gated) Gate(r *Read) { g.asked <- r }

// withGate serves a Reader in place of the fixture's first disk.
func withGate(f *fixture) *gated {
	g := &gated{newMemory(f.T, 1<<20), make(chan *Read, 9)}
	require.NoError(f, f.target.Set(1, Namespace{Store: g}))
	return g
}

func TestAReaderSaysWhenItsMemoryMayBeSeen(t *testing.T) {
	onEach(t, func(f *fixture) {
		g := withGate(f)
		d := f.disk(f.connect(nil), 1)
		b := noise(16 << 10)
		for name, see := range map[string]func() error{
			"read": func() error {
				got := make([]byte, len(b))
				_, err := d.ReadAt(got, 8192)
				assert.Equal(f, b, got)
				return err
			},
			"compare": func() error { return d.Compare(b, 8192) },
		} {
			clear(g.Memory())
			done := make(chan error, 1)
			go func() { done <- see() }()
			r := <-g.asked
			assert.Equal(f, []any{uint32(1), 8192, len(b)}, []any{r.NSID, r.Offset, r.Len})
			copy(g.Memory()[8192:], b)
			r.Done(nil)
			require.NoError(f, <-done, name)
		}
		_, err := d.WriteAt(b, 0)
		require.NoError(f, err)
		assert.Empty(f, g.asked, "a Write waits for no gate")
	})
}

func TestAReaderSaysWhyAReadFails(t *testing.T) {
	onEach(t, func(f *fixture) {
		g := withGate(f)
		d := f.disk(f.connect(nil), 1)
		for err, want := range map[error]nvme.Status{
			nvme.StatusError(nvme.ANATransitionStatus): nvme.ANATransitionStatus,
			errors.New("no majority"):                  nvme.WriteFault,
		} {
			done := make(chan error, 1)
			go func() {
				_, err := d.ReadAt(make([]byte, 4096), 0)
				done <- err
			}()
			(<-g.asked).Done(err)
			var failed nvme.StatusError
			require.ErrorAs(f, <-done, &failed)
			assert.Equal(f, want, nvme.Status(failed))
		}
	})
}

func TestAReadMayBeAnsweredAfterItsConnectionHasEnded(t *testing.T) {
	onEach(t, func(f *fixture) {
		g := withGate(f)
		c, err := host.Connect(f.within(), f.ia, f.config())
		require.NoError(f, err)
		d := f.disk(c, 1)
		go func() { _, _ = d.ReadAt(make([]byte, 4096), 0) }()
		r := <-g.asked
		require.NoError(f, c.Close())
		require.NoError(f, f.target.Remove(1))
		r.Done(nil)
	})
}

// copied is a Copier: what it copies is not what its memory has.
type copied struct {
	store.Store
	has []byte
	err error
}

func (c *copied) Copy(to []byte, off int) error {
	copy(to, c.has[off:])
	return c.err
}

func (c *copied) Same(as []byte, off int) (bool, error) {
	return bytes.Equal(as, c.has[off:][:len(as)]), c.err
}

func TestACopierSaysWhyABlockIsNotSeen(t *testing.T) {
	onEach(t, func(f *fixture) {
		c := &copied{newMemory(f.T, 1<<20), noise(1 << 20), nvme.StatusError(nvme.ANAInaccessibleStatus)}
		require.NoError(f, f.target.Set(1, Namespace{Store: c}))
		d := f.disk(f.connect(nil), 1)
		_, err := d.ReadAt(make([]byte, 4096), 8192)
		require.ErrorIs(f, err, c.err)
		require.ErrorIs(f, d.Compare(c.has[8192:][:8192], 8192), c.err)
	})
}

func TestACompareOfABlockIsTheStores(t *testing.T) {
	onEach(t, func(f *fixture) {
		c := &copied{newMemory(f.T, 1<<20), noise(1 << 20), nil}
		require.NoError(f, f.target.Set(1, Namespace{Store: c}))
		d := f.disk(f.connect(nil), 1)
		for _, n := range []int{4096, 8192} {
			require.NoError(f, d.Compare(c.has[8192:][:n], 8192))
			require.ErrorIs(f, d.Compare(c.Memory()[8192:][:n], 8192), nvme.StatusError(nvme.CompareFailure|nvme.DoNotRetry))
		}
	})
}

func TestAReadOfABlockIsACopyThatTheStoreMakes(t *testing.T) {
	onEach(t, func(f *fixture) {
		c := &copied{newMemory(f.T, 1<<20), noise(1 << 20), nil}
		require.NoError(f, f.target.Set(1, Namespace{Store: c}))
		d := f.disk(f.connect(nil), 1)
		for _, n := range []int{4096, 8192} {
			got, want := make([]byte, n), c.has[8192:][:n]
			if n > 4096 {
				want = c.Memory()[8192:][:n]
			}
			_, err := d.ReadAt(got, 8192)
			require.NoError(f, err)
			assert.Equal(f, want, got)
		}
	})
}

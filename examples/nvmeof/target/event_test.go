package target

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/host"
	"godat/examples/nvmeof/nvme"
	"godat/examples/nvmeof/store"
	"godat/hw"
)

// memory is a store of some bytes that tells when it is closed.
type memory struct {
	store.Store
	closed chan struct{}
}

func newMemory(t *testing.T, size int) memory {
	s, err := store.NewMemory(size)
	require.NoError(t, err)
	return memory{s, make(chan struct{})}
}

func (m memory) Close() error {
	close(m.closed)
	return m.Store.Close()
}

func TestAHostLearnsOfDisksThatComeAndGrowAndGo(t *testing.T) {
	onEach(t, func(f *fixture) {
		c, other := f.connect(nil), f.connect(func(cfg *host.Config) { cfg.ID[0]++ })
		small, large := newMemory(t, 1<<20), newMemory(t, 2<<20)
		id := [16]byte{9}
		change := func(err error) {
			require.NoError(f, err)
			for _, c := range []*host.Controller{c, other} {
				ids, err := c.Changed(f.within())
				require.NoError(f, err)
				assert.Equal(f, []uint32{5}, ids)
			}
		}

		change(f.target.Set(5, Namespace{Store: small, BlockSize: 512, ID: id}))
		old := f.disk(c, 5)
		assert.EqualValues(f, 1<<20, old.Size())
		b := noise(8192)
		_, err := old.WriteAt(b, 512)
		require.NoError(f, err)
		list := make([]byte, nvme.PageLen)
		_, err = c.Admin(f.within(), nvme.Identify(nvme.IdentifyActiveList, 0), list)
		require.NoError(f, err)
		assert.Equal(f, []uint32{1, 2, 5}, nvme.ParseNamespaceList(list))

		copy(large.Memory(), small.Memory())
		change(f.target.Set(5, Namespace{Store: large, BlockSize: 512, ID: id}))
		d := f.disk(c, 5)
		assert.EqualValues(f, 2<<20, d.Size())
		require.NoError(f, d.Compare(b, 512))
		_, err = d.WriteAt(b, 3<<19)
		require.NoError(f, err)
		require.NoError(f, d.Flush(f.within()))
		_, err = d.Do(f.within(), nvme.Command{Opcode: nvme.IOFlush, NSID: nvme.AllNamespaces}, nil)
		require.NoError(f, err)

		change(f.target.Remove(5))
		require.NoError(f, f.target.Remove(5), "again")
		_, err = d.ReadAt(b, 0)
		require.ErrorIs(f, err, nvme.StatusError(nvme.InvalidNamespace))
		_, err = c.Disk(f.within(), 5)
		require.ErrorIs(f, err, nvme.StatusError(nvme.InvalidNamespace))
		require.NoError(f, c.Close())
		<-small.closed
		<-large.closed

		require.Error(f, f.target.Set(0, Namespace{Store: small}))
		require.Error(f, f.target.Remove(mostNamespaces+1))
		require.NoError(f, f.stop())
		require.ErrorIs(f, f.target.Set(5, Namespace{Store: f.stores[0]}), ErrStopped)
	})
}

func TestAStoreIsClosedOnlyWhenNoConnectionUsesIt(t *testing.T) {
	f := start(t, "loop", nil)
	c := f.connect(nil)
	s := newMemory(t, 1<<20)
	require.NoError(t, f.target.Set(3, Namespace{Store: s}))
	d := f.disk(c, 3)
	for range c.Queues() {
		_, err := d.ReadAt(make([]byte, 4096), 0)
		require.NoError(t, err)
	}
	ns := f.target.namespaces.at(3)
	require.NoError(t, f.target.Remove(3))
	f.target.namespaces.mu.Lock()
	assert.Equal(t, c.Queues(), ns.users)
	f.target.namespaces.mu.Unlock()
	require.NoError(t, c.Close())
	<-s.closed
	unused := newMemory(t, 1<<20)
	require.NoError(t, f.target.Set(3, Namespace{Store: unused}))
	require.NoError(t, f.target.Remove(3))
	<-unused.closed
}

func TestAnEventIsFollowedByNoOtherUntilTheHostHasReadTheLogPage(t *testing.T) {
	f, _, _ := startSlow(t)
	set := func(nsid uint32) { require.NoError(t, f.target.Set(nsid, Namespace{Store: newMemory(t, 4096)})) }
	for cid := range uint16(2) {
		require.NoError(t, f.admin.SendBytes(rawCommand(nvme.Command{Opcode: nvme.AdminAsyncEvent, Flags: nvme.UsesList, CID: cid})))
	}
	exchange := func(c nvme.Command) {
		c.CID = 9
		completion := rawExchange(t, f.admin, rawCommand(c))
		require.Equal(t, nvme.Success, completion.Status)
		require.EqualValues(t, 9, completion.CID, "no event comes before")
	}
	event := func(cid uint16) {
		completion := rawCompletion(t, f.admin)
		assert.Equal(t, nvme.Completion{Result: uint64(nvme.NamespaceChanged), SQ: completion.SQ, CID: cid}, completion)
	}
	set(7)
	exchange(nvme.SetFeature(nvme.FeatureAsyncEvents, 0))
	exchange(nvme.SetFeature(nvme.FeatureAsyncEvents, nvme.NamespaceNotices))
	event(0)
	set(8)
	for range 50 { // so many that the queue sees the notice meanwhile
		exchange(nvme.GetFeature(nvme.FeatureAsyncEvents))
	}
	log := func(retain uint32) {
		region, err := f.admin.Alloc(nvme.PageLen, hw.LocalWrite|hw.RemoteWrite)
		require.NoError(t, err)
		c := nvme.GetLogPage(nvme.LogChangedNamespaces, 0, nvme.PageLen)
		c.CDW10 |= retain << 15
		where := region.Remote(0, nvme.PageLen)
		c.Data = nvme.Descriptor{Type: nvme.Keyed, Address: where.Addr, Key: where.Context, Length: where.Len}
		exchange(c)
		assert.Equal(t, []uint32{7, 8}, nvme.ParseNamespaceList(region.Bytes()))
	}
	log(1)
	log(0)
	set(1000)
	event(1)
}

func TestAnAsyncEventRequestIsAborted(t *testing.T) {
	onEach(t, func(f *fixture) {
		c := f.connect(nil)
		for range 2 * asyncLimit { // a request that stays would be one too many
			why := errors.New("the program waits no longer")
			ctx, cancel := context.WithTimeoutCause(f.within(), 5*time.Millisecond, why)
			_, err := c.Changed(ctx)
			require.ErrorIs(f, err, why)
			cancel()
		}
	})
}

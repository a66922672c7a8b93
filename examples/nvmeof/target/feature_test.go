package target

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/host"
	"godat/examples/nvmeof/nvme"
)

func TestAFeatureHasTheValuesOfTheSpecification(t *testing.T) {
	f := start(t, "loop", nil)
	c := f.connect(func(cfg *host.Config) { cfg.Queues = 1 })
	get := func(id nvme.Feature, which nvme.Which, cdw11 uint32) (uint64, error) {
		command := nvme.GetFeatureValue(id, which)
		command.CDW11 = cdw11
		return c.Admin(f.within(), command, nil)
	}
	const under = 1 << 20
	for _, x := range []struct {
		name          string
		id            nvme.Feature
		cdw11         uint32
		initial       uint32
		set, then     uint32
		refused       uint32 // a value that is refused; 0 if none is
		changeable    bool
		refusedStatus nvme.Status
	}{
		{"arbitration", nvme.FeatureArbitration, 0, 0, 0x01020304, 0x01020304, 0, true, 0},
		{"power", nvme.FeaturePower, 0, 0, 1 << 5, 1 << 5, 1, true, noField},
		{"temperature over", nvme.FeatureTemperature, 0, 0xffff, 300, 300, 2<<20 | 1, true, noField},
		{"temperature under", nvme.FeatureTemperature, under, 0, under | 200, 200, 3 << 16, true, noField},
		{"error recovery", nvme.FeatureErrorRecovery, 0, 0, 10, 10, 1 << 16, true, noField},
		{"write atomicity", nvme.FeatureWriteAtomicity, 0, 0, 1, 1, 0, true, 0},
		{"volatile cache", nvme.FeatureVolatileCache, 0, 1, 0, 1, 0, false, nvme.FeatureNotChangeable},
		{"events", nvme.FeatureAsyncEvents, 0, 0, 0x1ff, 0x1ff, 1 << 9, true, noField},
	} {
		value, err := get(x.id, nvme.CurrentValue, x.cdw11)
		require.NoError(t, err, x.name)
		assert.EqualValues(t, x.initial, value, x.name)
		_, err = c.Admin(f.within(), nvme.SetFeature(x.id, x.set), nil)
		if !x.changeable {
			require.ErrorIs(t, err, nvme.StatusError(x.refusedStatus), x.name)
		} else {
			require.NoError(t, err, x.name)
		}
		if x.refused != 0 {
			_, err = c.Admin(f.within(), nvme.SetFeature(x.id, x.refused), nil)
			require.ErrorIs(t, err, nvme.StatusError(x.refusedStatus), x.name)
		}
		value, err = get(x.id, nvme.CurrentValue, x.cdw11)
		require.NoError(t, err, x.name)
		assert.EqualValues(t, x.then, value, x.name)
		for _, which := range []nvme.Which{nvme.DefaultValue, nvme.SavedValue} {
			value, err = get(x.id, which, x.cdw11)
			require.NoError(t, err, x.name)
			assert.EqualValues(t, x.initial, value, x.name)
		}
		value, err = get(x.id, nvme.Supported, x.cdw11)
		require.NoError(t, err, x.name)
		assert.Equal(t, x.changeable, uint32(value)&nvme.FeatureChangeable != 0, x.name)
		_, err = get(x.id, 4, x.cdw11)
		require.ErrorIs(t, err, nvme.StatusError(noField), x.name)
	}
}

func TestNoFeatureIsSavedOrOneOfANamespace(t *testing.T) {
	f := start(t, "loop", nil)
	c := f.connect(nil)
	for _, x := range features {
		command := nvme.SetFeature(x.id, 0)
		command.CDW10 |= nvme.Save
		_, err := c.Admin(f.within(), command, nil)
		require.ErrorIs(t, err, nvme.StatusError(nvme.FeatureNotSaveable), "feature %#x", x.id)
		command = nvme.SetFeature(x.id, 0)
		command.NSID = 1
		_, err = c.Admin(f.within(), command, nil)
		require.ErrorIs(t, err, nvme.StatusError(nvme.FeatureNotOfNamespace), "feature %#x", x.id)
	}
	value, err := c.Admin(f.within(), nvme.GetFeature(nvme.FeatureKeepAlive), nil)
	require.NoError(t, err)
	assert.EqualValues(t, 15000, value, "what was refused changed nothing")
}

func TestTheNumberOfQueuesIsTheOneThatWasGranted(t *testing.T) {
	f := start(t, "loop", func(cfg *Config) { cfg.Queues = 4 })
	queues := func(c *host.Controller, which nvme.Which) uint64 {
		value, err := c.Admin(f.within(), nvme.GetFeatureValue(nvme.FeatureQueues, which), nil)
		require.NoError(t, err)
		return value
	}
	c := f.connect(func(cfg *host.Config) { cfg.Queues = 3 })
	assert.EqualValues(t, nvme.Queues(3), queues(c, nvme.CurrentValue))
	assert.EqualValues(t, nvme.Queues(4), queues(c, nvme.DefaultValue))
	c = f.connect(func(cfg *host.Config) { cfg.Queues = 9 })
	assert.EqualValues(t, nvme.Queues(4), queues(c, nvme.CurrentValue))
	_, err := c.Admin(f.within(), nvme.SetFeature(nvme.FeatureQueues, 0xffff), nil)
	require.ErrorIs(t, err, nvme.StatusError(noField))
}

func TestTheHostsIdentifierIsTheOneOfConnect(t *testing.T) {
	onEach(t, func(f *fixture) {
		c := f.connect(func(cfg *host.Config) { cfg.ID = [16]byte{3, 1, 4} })
		command := nvme.GetFeature(nvme.FeatureHostID)
		command.CDW11 = nvme.LongHostID
		id := make([]byte, 16)
		_, err := c.Admin(f.within(), command, id)
		require.NoError(f, err)
		assert.Equal(f, []byte{3, 1, 4, 0}, id[:4])
		_, err = c.Admin(f.within(), nvme.SetFeature(nvme.FeatureHostID, 1), nil)
		require.ErrorIs(f, err, nvme.StatusError(nvme.CommandSequenceError))
	})
}

func TestADiskThatIsNotVolatileHasNoCacheToSpeakOf(t *testing.T) {
	f := start(t, "loop", func(cfg *Config) { cfg.Namespaces = []Namespace{{Store: newMemory(t, 1<<20)}} })
	c := f.connect(nil)
	assert.False(t, c.Identity().VolatileCache)
	for _, command := range []nvme.Command{nvme.GetFeature(nvme.FeatureVolatileCache), nvme.SetFeature(nvme.FeatureVolatileCache, 1)} {
		_, err := c.Admin(f.within(), command, nil)
		require.ErrorIs(t, err, nvme.StatusError(noField))
	}
}

func TestAnInactiveNamespaceIsAPageOfZeros(t *testing.T) {
	onEach(t, func(f *fixture) {
		c := f.connect(nil)
		page := noise(nvme.PageLen)
		_, err := c.Admin(f.within(), nvme.Identify(nvme.IdentifyNamespacePage, 3), page)
		require.NoError(f, err)
		assert.Equal(f, make([]byte, nvme.PageLen), page)
		_, err = c.Disk(f.within(), 3)
		require.ErrorIs(f, err, nvme.StatusError(nvme.InvalidNamespace))
	})
}

func TestTheHealthLogCountsWhatHostsDid(t *testing.T) {
	f := start(t, "loop", nil)
	c := f.connect(nil)
	d := f.disk(c, 1)
	b := noise(1 << 20)
	_, err := d.WriteAt(b, 0)
	require.NoError(t, err)
	_, err = d.ReadAt(b[:8192], 0)
	require.NoError(t, err)
	log := func(p nvme.LogPage) []byte {
		page := make([]byte, 512)
		_, err := c.Admin(f.within(), logOf(p, 512), page)
		require.NoError(t, err)
		return page
	}
	require.Eventually(t, func() bool { return log(nvme.LogHealth)[64] == 1 }, patience, tick, "reads; a queue counts when it has posted")
	page := log(nvme.LogHealth)
	assert.Equal(t, []byte{100}, page[3:4], "percent of the spare blocks")
	assert.Equal(t, []byte{1, 3}, []byte{page[32], page[48]}, "thousands of 512 bytes, read and written")
	assert.EqualValues(t, 8, page[80], "writes")
	assert.Equal(t, append([]byte{1, 0, 0, 0, 0, 0, 0, 0}, "1       "...), log(nvme.LogFirmware)[:16])
	command := logOf(nvme.LogHealth, 512)
	command.NSID = 1
	_, err = c.Admin(f.within(), command, page)
	require.ErrorIs(t, err, nvme.StatusError(noField), "the page is for all namespaces")
}

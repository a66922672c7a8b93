package target

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/host"
	"godat/examples/nvmeof/nvme"
	"godat/hw"
)

// inGroups puts the fixture's second disk in ANA group 7.
func inGroups(cfg *Config) { cfg.Namespaces[1].ANAGroup = 7 }

// onEachInGroups is onEach with the disks in two ANA groups.
func onEachInGroups(t *testing.T, test func(f *fixture)) {
	for _, provider := range []string{"loop", "iwarp"} {
		t.Run(provider, func(t *testing.T) { test(start(t, provider, inGroups)) })
	}
}

// anaLog is the ANA log page as the target appends it.
func (f *fixture) anaLog(c *host.Controller, bits uint32, n int) []byte {
	f.Helper()
	page := make([]byte, nvme.PageLen)
	command := nvme.GetLogPage(nvme.LogANA, 0, nvme.PageLen)
	command.CDW10 |= bits
	_, err := c.Admin(f.within(), command, page)
	require.NoError(f, err)
	assert.Equal(f, make([]byte, len(page)-n), page[n:])
	return page[:n]
}

func TestIOOfAGroupThatIsNotAccessibleFailsWithAPathRelatedStatus(t *testing.T) {
	onEachInGroups(t, func(f *fixture) {
		c := f.connect(nil)
		one, two := f.disk(c, 1), f.disk(c, 2)
		assert.EqualValues(f, 1, one.About().ANAGroup)
		assert.EqualValues(f, 7, two.About().ANAGroup)
		commands := map[string]func(d *host.Disk) error{
			"read":    func(d *host.Disk) error { _, err := d.ReadAt(make([]byte, 4096), 0); return err },
			"write":   func(d *host.Disk) error { _, err := d.WriteAt(make([]byte, 4096), 0); return err },
			"flush":   func(d *host.Disk) error { return d.Flush(f.within()) },
			"zero":    func(d *host.Disk) error { return d.WriteZeroes(f.within(), 0, 4096, false) },
			"dataset": func(d *host.Disk) error { return d.Deallocate(f.within(), nvme.Range{Blocks: 8}) },
		}
		flushAll := func() error {
			_, err := one.Do(f.within(), nvme.Command{Opcode: nvme.IOFlush, NSID: nvme.AllNamespaces}, nil)
			return err
		}
		for state, status := range map[nvme.ANAState]nvme.Status{
			nvme.ANAInaccessible: 0x302, nvme.ANAPersistentLoss: 0x301, nvme.ANAChange: 0x303,
		} {
			require.NoError(f, f.target.SetANAState(7, state))
			for name, command := range commands {
				require.NoError(f, command(one), "%s in another group", name)
				var failed nvme.StatusError
				require.ErrorAs(f, command(two), &failed, "%s %v", name, state)
				assert.Equal(f, status, nvme.Status(failed), "%s %v: the host may retry it", name, state)
			}
			require.ErrorIs(f, flushAll(), nvme.StatusError(status), "a flush of both")
			for _, state := range []nvme.ANAState{nvme.ANANonOptimized, nvme.ANAOptimized} {
				require.NoError(f, f.target.SetANAState(7, state))
				for name, command := range commands {
					require.NoError(f, command(two), "%s %v", name, state)
				}
				require.NoError(f, flushAll())
			}
		}
	})
}

func TestATargetCountsItsAssociations(t *testing.T) {
	onEachInGroups(t, func(f *fixture) {
		require.Zero(f, f.target.Associations())
		c := f.connect(nil)
		require.Equal(f, 1, f.target.Associations())
		require.NoError(f, c.Close())
		require.Eventually(f, func() bool { return f.target.Associations() == 0 }, time.Minute, time.Millisecond)
	})
}

func TestAHostLearnsOfTheStatesOfANAGroups(t *testing.T) {
	onEachInGroups(t, func(f *fixture) {
		c := f.connect(nil)
		event := make(chan uint64, 1)
		listen := func() {
			go func() {
				e, err := c.Admin(f.within(), nvme.Command{Opcode: nvme.AdminAsyncEvent}, nil)
				assert.NoError(f, err)
				event <- e
			}()
		}
		assert.Equal(f, nvme.AppendANA(nil, 0, []nvme.ANAGroup{
			{ID: 1, State: nvme.ANAOptimized, Namespaces: []uint32{1}},
			{ID: 7, State: nvme.ANAOptimized, Namespaces: []uint32{2}},
		}), f.anaLog(c, 0, 16+36+36))
		_, err := c.Admin(f.within(), nvme.SetFeature(nvme.FeatureAsyncEvents, nvme.ANANotices), nil)
		require.NoError(f, err)
		require.NoError(f, f.target.SetANAState(7, nvme.ANAOptimized), "no news")
		require.NoError(f, f.target.SetANAState(7, nvme.ANAInaccessible))
		require.NoError(f, f.target.SetANAState(1, nvme.ANANonOptimized))
		listen()
		assert.EqualValues(f, 0x0c0302, <-event)
		assert.Equal(f, nvme.AppendANA(nil, 2, []nvme.ANAGroup{
			{ID: 1, Changes: 2, State: nvme.ANANonOptimized},
			{ID: 7, Changes: 1, State: nvme.ANAInaccessible},
		}), f.anaLog(c, nvme.GroupsOnly, 16+32+32), "without the namespaces")

		// A disk that comes is another page. One that goes to another group is an event, too.
		require.NoError(f, f.target.Set(5, Namespace{Store: newMemory(t, 4096), ID: [16]byte{9}}))
		listen()
		require.NoError(f, f.target.Set(5, Namespace{Store: newMemory(t, 4096), ID: [16]byte{9}, ANAGroup: 7}))
		assert.EqualValues(f, 0x0c0302, <-event)
		assert.Equal(f, nvme.AppendANA(nil, 5, []nvme.ANAGroup{
			{ID: 1, Changes: 4, State: nvme.ANANonOptimized, Namespaces: []uint32{1}},
			{ID: 7, Changes: 5, State: nvme.ANAInaccessible, Namespaces: []uint32{2, 5}},
		}), f.anaLog(c, 0, 16+36+40))

		require.Error(f, f.target.SetANAState(0, nvme.ANAOptimized))
		require.Error(f, f.target.SetANAState(mostGroups+1, nvme.ANAOptimized))
		require.Error(f, f.target.SetANAState(1, 5))
		require.Error(f, f.target.Set(6, Namespace{Store: f.stores[0], ANAGroup: mostGroups + 1}))
		_, err = New(f.within(), f.ia, Config{Subsystem: subsystem, ANATransition: 256 * time.Second})
		require.Error(f, err)
		id := c.Identity()
		assert.EqualValues(f, 30, id.ANATransition)
		assert.EqualValues(f, mostGroups, id.ANAGroups)
		discovery := f.connect(func(cfg *host.Config) { cfg.Subsystem = "" }).Identity()
		assert.Zero(f, discovery.ANATransition)
	})
}

// Linux asks for as much as a page of all groups and namespaces that there may be.
func TestAnANALogThatIsLongerThanAPageComesWhole(t *testing.T) {
	f, _, _ := startSlow(t)
	const n = nvme.ANAHeaderLen + mostGroups*nvme.ANAGroupLen + mostNamespaces*4
	groups := []nvme.ANAGroup{{ID: 1, State: nvme.ANAOptimized, Namespaces: []uint32{1}}}
	for nsid := uint32(2); nsid <= 129; nsid++ {
		group := (nsid-1)%mostGroups + 1
		require.NoError(t, f.target.Set(nsid, Namespace{Store: newMemory(t, 4096), ANAGroup: group}))
		if group == 1 {
			groups[0].Changes, groups[0].Namespaces = uint64(nsid-1), append(groups[0].Namespaces, nsid)
		} else {
			groups = append(groups, nvme.ANAGroup{ID: group, Changes: uint64(nsid - 1), State: nvme.ANAOptimized, Namespaces: []uint32{nsid}})
		}
	}
	region, err := f.admin.Alloc(n, hw.LocalRead|hw.LocalWrite|hw.RemoteWrite)
	require.NoError(t, err)
	for i := range region.Bytes() {
		region.Bytes()[i] = 0xee
	}
	command := nvme.GetLogPage(nvme.LogANA, 0, n)
	where := region.Remote(0, n)
	command.Data = nvme.Descriptor{Type: nvme.Keyed, Address: where.Addr, Key: where.Context, Length: where.Len}
	require.Equal(t, nvme.Success, rawExchange(t, f.admin, rawCommand(command)).Status)
	want := nvme.AppendANA(nil, 128, groups)
	assert.Equal(t, append(want, make([]byte, n-len(want))...), region.Bytes())
}

func TestAnANAEventIsFollowedByNoOtherUntilTheHostHasReadItsLogPage(t *testing.T) {
	f, _, _ := startSlow(t)
	exchange := func(cid uint16, c nvme.Command) nvme.Completion {
		c.CID = cid
		return rawExchange(t, f.admin, rawCommand(c))
	}
	const kinds = nvme.NamespaceNotices | nvme.ANANotices
	require.Equal(t, nvme.Success, exchange(9, nvme.SetFeature(nvme.FeatureAsyncEvents, kinds)).Status)
	state := func(s nvme.ANAState) { require.NoError(t, f.target.SetANAState(1, s)) }
	state(nvme.ANAChange)
	event := func(cid uint16, want nvme.AsyncEvent) {
		completion := exchange(cid, nvme.Command{Opcode: nvme.AdminAsyncEvent, Flags: nvme.UsesList})
		assert.Equal(t, nvme.Completion{Result: uint64(want), SQ: completion.SQ, CID: cid}, completion)
	}
	event(0, nvme.ANAChanged)
	state(nvme.ANAInaccessible)
	require.NoError(t, f.target.Set(7, Namespace{Store: newMemory(t, 4096)}))
	event(1, nvme.NamespaceChanged)
	require.NoError(t, f.admin.SendBytes(rawCommand(nvme.Command{Opcode: nvme.AdminAsyncEvent, Flags: nvme.UsesList, CID: 2})))
	log := func(retain uint32) {
		region, err := f.admin.Alloc(nvme.PageLen, hw.LocalRead|hw.LocalWrite|hw.RemoteWrite)
		require.NoError(t, err)
		c := nvme.GetLogPage(nvme.LogANA, 0, nvme.PageLen)
		c.CDW10 |= retain << 15
		where := region.Remote(0, nvme.PageLen)
		c.Data = nvme.Descriptor{Type: nvme.Keyed, Address: where.Addr, Key: where.Context, Length: where.Len}
		assert.EqualValues(t, 9, exchange(9, c).CID, "no event comes before")
		assert.EqualValues(t, nvme.ANAInaccessible, region.Bytes()[nvme.ANAHeaderLen+16])
	}
	log(1)
	state(nvme.ANAInaccessible)
	log(0)
	for range 2 { // of which the first looks for events, after its own completion
		assert.EqualValues(t, 9, exchange(9, nvme.SetFeature(nvme.FeatureAsyncEvents, kinds)).CID, "no event without news")
	}
	state(nvme.ANAOptimized)
	completion := rawCompletion(t, f.admin)
	assert.Equal(t, nvme.Completion{Result: uint64(nvme.ANAChanged), SQ: completion.SQ, CID: 2}, completion)
}

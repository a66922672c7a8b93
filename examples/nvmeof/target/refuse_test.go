package target

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/host"
	"godat/examples/nvmeof/nvme"
	"godat/hw"
	"godat/hw/event"
	dat "godat/runtime"
)

func TestATargetRefusesAHostThatMayNotConnect(t *testing.T) {
	f := start(t, "iwarp", func(cfg *Config) {
		cfg.Hosts = []string{"nqn.2026-01.test:friend"}
		cfg.HostControllers = 1
	})
	for name, x := range map[string]struct {
		change func(*host.Config)
		want   error
	}{
		"not on the list": {func(cfg *host.Config) { cfg.Name = "nqn.2026-01.test:stranger" }, nvme.StatusError(nvme.ConnectInvalidHost)},
		"no name":         {func(cfg *host.Config) { cfg.Name = "friend" }, nvme.StatusError(nvme.ConnectInvalidParameters)},
		"no such subsystem": {
			func(cfg *host.Config) { cfg.Subsystem = "nqn.2026-01.test:other" },
			nvme.StatusError(nvme.ConnectInvalidParameters),
		},
	} {
		cfg := f.config()
		cfg.Name = "nqn.2026-01.test:friend"
		x.change(&cfg)
		_, err := host.Connect(f.within(), f.ia, cfg)
		require.ErrorIs(t, err, x.want, name)
	}
	friend := func(cfg *host.Config) { cfg.Name = "nqn.2026-01.test:friend" }
	f.connect(friend)
	cfg := f.config()
	friend(&cfg)
	_, err := host.Connect(f.within(), f.ia, cfg)
	require.ErrorIs(t, err, nvme.StatusError(nvme.ConnectControllerBusy), "a second controller of one host")
}

func TestATargetRejectsQueuesThatItCanNotServe(t *testing.T) {
	onEach(t, func(f *fixture) {
		good := nvme.ConnectRequest{RecvSize: 32, SendSize: 31}
		for want, change := range map[nvme.RejectStatus]func(r *nvme.ConnectRequest){
			nvme.RejectRecordFormat: func(r *nvme.ConnectRequest) { r.RecordFormat = 1 },
			nvme.RejectQueueID:      func(r *nvme.ConnectRequest) { r.QueueID = 3 },
			nvme.RejectSendSize:     func(r *nvme.ConnectRequest) { r.SendSize = 32 },
			nvme.RejectRecvSize:     func(r *nvme.ConnectRequest) { r.RecvSize = 1 },
		} {
			r := good
			change(&r)
			_, err := f.ia.Dial(f.within(), f.target.Addr(), dat.ConnConfig{Private: r.Append(nil)})
			var cause *hw.Cause
			require.True(f, errors.As(err, &cause), "%v: %v", want, err)
			status, ok := nvme.ParseReject(cause.Private)
			assert.True(f, ok)
			assert.Equal(f, want, status)
		}
		_, err := f.ia.Dial(f.within(), f.target.Addr(), dat.ConnConfig{Private: []byte("hello")})
		require.ErrorIs(f, err, event.Error(event.PeerRejected))
	})
}

func TestACommandThatIsWrongIsCompletedWithTheStatusForIt(t *testing.T) {
	onEach(t, func(f *fixture) {
		d := f.disk(f.connect(nil), 1)
		command := func(op nvme.Opcode, nsid uint32, lba uint64, blocks uint32) nvme.Command {
			c := nvme.Command{Opcode: op, NSID: nsid}
			c.SetRange(lba, blocks)
			return c
		}
		const blocks = diskSize / 4096
		for name, x := range map[string]struct {
			command nvme.Command
			n       int
			want    nvme.Status
		}{
			"an unknown opcode":               {command(0x55, 1, 0, 1), 4096, nvme.InvalidOpcode},
			"namespace 0":                     {command(nvme.IORead, 0, 0, 1), 4096, nvme.InvalidNamespace},
			"a namespace that is not there":   {command(nvme.IOWrite, 3, 0, 1), 4096, nvme.InvalidNamespace},
			"a flush of no namespace":         {command(nvme.IOFlush, 9, 0, 1), 0, nvme.InvalidNamespace},
			"a read at the end":               {command(nvme.IORead, 1, blocks, 1), 4096, nvme.LBAOutOfRange},
			"a write over the end":            {command(nvme.IOWrite, 1, blocks-1, 2), 8192, nvme.LBAOutOfRange},
			"an address that overflows":       {command(nvme.IORead, 1, 1<<64-1, 2), 8192, nvme.LBAOutOfRange},
			"less data than blocks":           {command(nvme.IORead, 1, 0, 2), 4096, nvme.DataLengthInvalid},
			"more data than blocks":           {command(nvme.IOWrite, 1, 0, 1), 8192, nvme.DataLengthInvalid},
			"a list that is too short":        {nvme.Command{Opcode: nvme.IODataset, NSID: 1, CDW10: 1, CDW11: 4}, 16, nvme.DataLengthInvalid},
			"a property on an I/O queue":      {nvme.PropertyGet(nvme.PropertyCSTS), 0, nvme.InvalidOpcode},
			"a Connect on a connected queue":  {nvme.Connect{}.Command(), nvme.ConnectDataLen, nvme.CommandSequenceError},
			"a list that is longer than said": {nvme.Command{Opcode: nvme.IODataset, NSID: 1, CDW11: 4}, 4096, nvme.Success},
			"a flush of all namespaces":       {command(nvme.IOFlush, nvme.AllNamespaces, 0, 1), 0, nvme.Success},
		} {
			_, err := d.Do(f.within(), x.command, make([]byte, x.n))
			if x.want == nvme.Success {
				require.NoError(f, err, name)
			} else {
				require.ErrorIs(f, err, nvme.StatusError(x.want), name)
			}
		}
	})
}

func TestAnAdminCommandThatIsWrongIsCompletedWithTheStatusForIt(t *testing.T) {
	onEach(t, func(f *fixture) {
		c := f.connect(nil)
		for name, x := range map[string]struct {
			command nvme.Command
			n       int
			want    nvme.Status
		}{
			"an unknown opcode":             {nvme.Command{Opcode: 0x55}, 0, nvme.InvalidOpcode},
			"an unknown page":               {nvme.Identify(0x77, 0), 4096, nvme.InvalidField},
			"a short page":                  {nvme.Identify(nvme.IdentifyControllerPage, 0), 512, nvme.DataLengthInvalid},
			"a namespace that is not there": {nvme.Identify(nvme.IdentifyDescriptors, 3), 4096, nvme.InvalidNamespace},
			"an unknown log":                {nvme.GetLogPage(0x77, 0, 512), 512, nvme.InvalidLogPage},
			"the discovery log":             {nvme.GetLogPage(nvme.LogDiscovery, 0, 512), 512, nvme.InvalidLogPage},
			"a log behind its end":          {nvme.GetLogPage(nvme.LogHealth, 1<<40, 512), 512, nvme.InvalidField},
			"an unknown feature":            {nvme.GetFeature(0x77), 0, nvme.InvalidField},
			"a feature that stays":          {nvme.SetFeature(nvme.FeatureVolatileCache, 0), 0, nvme.FeatureNotChangeable},
			"other queues, while some are":  {nvme.SetFeature(nvme.FeatureQueues, nvme.Queues(1)), 0, nvme.CommandSequenceError},
			"an unknown property":           {nvme.PropertyGet(0x40), 0, nvme.InvalidField},
			"a property that is read only":  {nvme.PropertySet(nvme.PropertyCSTS, 1), 0, nvme.InvalidField},
			"the health":                    {nvme.GetLogPage(nvme.LogHealth, 0, 512), 512, nvme.Success},
			"the version":                   {nvme.PropertyGet(nvme.PropertyVS), 0, nvme.Success},
			"an abort":                      {nvme.Command{Opcode: nvme.AdminAbort}, 0, nvme.Success},
		} {
			_, err := c.Admin(f.within(), x.command, make([]byte, x.n))
			if x.want == nvme.Success {
				require.NoError(f, err, name)
			} else {
				require.ErrorIs(f, err, nvme.StatusError(x.want), name)
			}
		}
		names := make([]byte, nvme.PageLen)
		_, err := c.Admin(f.within(), nvme.Identify(nvme.IdentifyActiveList, 0), names)
		require.NoError(f, err)
		assert.Equal(f, []byte{1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}, names[:12])
		_, err = c.Admin(f.within(), nvme.Identify(nvme.IdentifyDescriptors, 2), names)
		require.NoError(f, err)
		assert.Equal(f, byte(2), names[19])
		value, err := c.Admin(f.within(), nvme.GetFeature(nvme.FeatureKeepAlive), nil)
		require.NoError(f, err)
		assert.EqualValues(f, 15000, value)
	})
}

func TestAHostThatSendsNoConnectLosesItsConnection(t *testing.T) {
	f := start(t, "loop", func(cfg *Config) { cfg.ConnectTime = time.Millisecond })
	r := rawQueue(f, f.ia, f.target, 0)
	_, err := r.Receive(f.within())
	require.Error(t, err)
}

func TestAHostThatKeepsNoKeepAliveLosesItsQueues(t *testing.T) {
	f := start(t, "loop", nil)
	c := f.connect(func(cfg *host.Config) { cfg.KeepAlive = -1 })
	d := f.disk(c, 1)
	_, err := c.Admin(f.within(), nvme.SetFeature(nvme.FeatureKeepAlive, 1), nil)
	require.NoError(t, err)
	lost := func() bool {
		_, err := d.ReadAt(make([]byte, 4096), 0)
		return errors.Is(err, host.ErrEnded)
	}
	require.Eventually(t, lost, time.Minute, time.Millisecond)
	f.connect(nil)
}

func TestATargetThatWasPausedGivesAHostItsTimeAgain(t *testing.T) {
	q := &queue{target: &Target{cfg: Config{ConnectTime: time.Hour}}, limit: newLimit(time.Hour)}
	q.admin = admin{q: q, keepAlive: time.Hour}
	for _, q.controller = range []*controller{nil, new(controller)} {
		q.limit.due = time.Now().Add(-2 * paused)
		q.late() // without a connection, which it would break
		assert.Greater(t, time.Until(q.limit.due), 59*time.Minute)
	}
}

func TestAnyCommandKeepsAControllerAlive(t *testing.T) {
	q := &queue{controller: new(controller)}
	a := &admin{q: q, keepAlive: time.Hour}
	q.controller.mark()
	assert.False(t, a.expired(), "a command has come")
	assert.True(t, a.expired(), "none since")
	a.keepAlive = 0
	assert.False(t, a.expired(), "this host asks for no time-out")

	f := start(t, "loop", nil)
	connected := f.connect(nil)
	d := f.disk(connected, 1)
	c := f.target.controllers.all[connected.ID()]
	c.busy.Store(false)
	_, err := d.ReadAt(make([]byte, 4096), 0)
	require.NoError(t, err)
	assert.True(t, c.busy.Load())
}

func TestATargetThatStopsEndsItsConnectionsInOrder(t *testing.T) {
	onEach(t, func(f *fixture) {
		c := f.connect(nil)
		d := f.disk(c, 1)
		require.NoError(f, f.stop())
		_, err := d.ReadAt(make([]byte, 4096), 0)
		require.ErrorIs(f, err, host.ErrEnded)
	})
}

func TestAHostThatBreaksTheProtocolLosesItsConnectionAlone(t *testing.T) {
	onEach(t, func(f *fixture) {
		d := f.disk(f.connect(nil), 1)
		for name, hostile := range map[string]func(c *dat.Conn) error{
			"an empty capsule": func(c *dat.Conn) error { return c.SendBytes(nil) },
			"a short capsule":  func(c *dat.Conn) error { return c.SendBytes(make([]byte, nvme.CommandLen-1)) },
			"data that is nowhere": func(c *dat.Conn) error {
				capsule := rawConnect(0, nvme.DynamicController)
				binary.LittleEndian.PutUint64(capsule[24:], 1<<40)
				capsule[39] = byte(nvme.Keyed)
				return c.SendBytes(capsule)
			},
		} {
			c := rawQueue(f, f.ia, f.target, 0)
			require.NoError(f, hostile(c), name)
			require.Error(f, drain(f.within(), c), name)
			_, err := d.ReadAt(make([]byte, 4096), 0)
			require.NoError(f, err, name)
		}
	})
}

// drain releases what comes until the connection ends or the target has completed
// nothing for long; it returns why.
func drain(ctx context.Context, c *dat.Conn) error {
	for {
		b, err := c.Receive(ctx)
		if err != nil {
			return err
		}
		c.Release(b)
	}
}

func TestCommandsBeforeConnectAndEnableAreOutOfSequence(t *testing.T) {
	f := start(t, "loop", nil)
	c := rawQueue(f, f.ia, f.target, 0)
	exchange := func(capsule []byte) nvme.Completion { return rawExchange(t, c, capsule) }
	keepAlive := nvme.Command{Opcode: nvme.AdminKeepAlive, Flags: nvme.UsesList}
	capsule := make([]byte, nvme.CommandLen)
	keepAlive.Put(capsule)
	outOfSequence := nvme.CommandSequenceError | nvme.DoNotRetry
	assert.Equal(t, outOfSequence, exchange(capsule).Status)
	connected := exchange(rawConnect(0, nvme.DynamicController))
	assert.Equal(t, nvme.Success, connected.Status)
	assert.EqualValues(t, 2, connected.SQ.Head)
	assert.Equal(t, outOfSequence, exchange(rawConnect(0, nvme.DynamicController)).Status)
	assert.Equal(t, outOfSequence, exchange(capsule).Status)
	enable := nvme.PropertySet(nvme.PropertyCC, nvme.ConfigEnable|nvme.ConfigEntrySizes)
	enable.Flags = nvme.UsesList
	set := make([]byte, nvme.CommandLen)
	enable.Put(set)
	assert.Equal(t, nvme.Success, exchange(set).Status)
	assert.Equal(t, nvme.Success, exchange(capsule).Status)
	event := nvme.Command{Opcode: nvme.AdminAsyncEvent, Flags: nvme.UsesList}
	event.Put(capsule)
	for range asyncLimit {
		require.NoError(t, c.SendBytes(capsule))
	}
	assert.Equal(t, nvme.AsyncEventLimitExceeded|nvme.DoNotRetry, exchange(capsule).Status)

	reset := nvme.PropertySet(nvme.PropertyCC, 0)
	reset.Flags, reset.CID = nvme.UsesList, 77
	require.NoError(t, c.SendBytes(rawCommand(reset)))
	for range asyncLimit {
		assert.Equal(t, nvme.AbortRequested, rawCompletion(t, c).Status, "a reset ends the requests")
	}
	ended := rawCompletion(t, c)
	assert.Equal(t, nvme.Success, ended.Status)
	assert.EqualValues(t, 77, ended.CID)
	require.Equal(t, nvme.Success, exchange(set).Status)
	for range asyncLimit {
		require.NoError(t, c.SendBytes(capsule))
	}
	keepAlive.CID = 78
	alive := exchange(rawCommand(keepAlive))
	assert.EqualValues(t, 78, alive.CID, "the new ones wait")
}

func TestAControllerThatIsResetTakesNewQueues(t *testing.T) {
	f := start(t, "loop", nil)
	admin := rawQueue(f, f.ia, f.target, 0)
	id := rawExchange(t, admin, rawConnect(0, nvme.DynamicController))
	require.Equal(t, nvme.Success, id.Status)
	var old *dat.Conn
	for range 3 {
		enable := rawExchange(t, admin, rawCommand(nvme.PropertySet(nvme.PropertyCC, nvme.ConfigEnable)))
		require.Equal(t, nvme.Success, enable.Status)
		q := rawQueue(f, f.ia, f.target, 1)
		require.Equal(t, nvme.Success, rawExchange(t, q, rawConnect(1, uint16(id.Result))).Status)
		if old != nil {
			require.Error(t, drain(f.within(), old), "the reset ends the old queue")
		}
		twice := rawQueue(f, f.ia, f.target, 1)
		assert.Equal(t, nvme.ConnectInvalidParameters, rawExchange(t, twice, rawConnect(1, uint16(id.Result))).Status.Code())
		old = q
		require.Equal(t, nvme.Success, rawExchange(t, admin, rawCommand(nvme.PropertySet(nvme.PropertyCC, 0))).Status)
	}
}

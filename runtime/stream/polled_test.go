package stream

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"godat/hw/sim"
	"godat/internal/delivery"
	"godat/internal/door"
	dat "godat/runtime"
)

// An adapter whose consumers poll leaves the device to them for a millisecond after a
// poll. A Read that waits can't know whether another consumer goes on polling.
func TestACallThatWaitsPutsTheAdapterInCharge(t *testing.T) {
	r := newRig(t, adapters[0], Config{})
	client, server := r.pair()
	hints := make(chan delivery.PollHint, 8)
	server.line.events.Wiring(door.Key{}).Consumer().SetPollDevice(func(h delivery.PollHint) { hints <- h })
	read := write(func() error {
		_, err := server.Read(make([]byte, 1))
		return err
	})
	select {
	case h := <-hints:
		require.Equal(t, delivery.PollBeforeSleep, h)
	case <-time.After(time.Minute):
		t.Fatal("the Read does not poll")
	}
	_, err := client.Write([]byte{1})
	require.NoError(t, err)
	require.NoError(t, <-read)
}

func TestAStreamIsANetConnWhereConsumersPoll(t *testing.T) {
	r := openRig(t, "sim", Config{}, dat.WithProvider(sim.New(sim.Config{Seed: 1})))
	testConn(t, r)
}

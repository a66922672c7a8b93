package target

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/nvmeof/nvme"
	"godat/hw"
	dat "godat/runtime"
)

// everything are the privileges of memory that hosts and targets read and write.
const everything = hw.LocalRead | hw.LocalWrite | hw.RemoteRead | hw.RemoteWrite

// rawQueue is the connection of a queue of 32 entries without a Connect command. What
// goes over it is up to the test.
func rawQueue(t testing.TB, ia *dat.IA, target *Target, id uint16) *dat.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := ia.Dial(ctx, target.Addr(), dat.ConnConfig{
		Depth: 64, Message: nvme.CommandLen + inCapsule,
		Private: nvme.ConnectRequest{QueueID: id, RecvSize: 32, SendSize: 31}.Append(nil),
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

// rawConnect is a Connect command with its data in the capsule.
func rawConnect(queue, controller uint16) []byte { return rawConnectTo(subsystem, queue, controller) }

// rawConnectTo is rawConnect to a subsystem of another name.
func rawConnectTo(name string, queue, controller uint16) []byte {
	c := nvme.Connect{QueueID: queue, QueueSize: 31}.Command()
	c.Data = nvme.Descriptor{Type: nvme.InCapsule, Length: nvme.ConnectDataLen}
	d := nvme.ConnectData{Controller: controller, Subsystem: name, Host: "nqn.2026-01.test:raw"}
	data := make([]byte, nvme.ConnectDataLen)
	d.Put(data)
	return append(rawCommand(c), data...)
}

// rawCommand is a capsule of a command alone.
func rawCommand(c nvme.Command) []byte {
	capsule := make([]byte, nvme.CommandLen)
	c.Put(capsule)
	return capsule
}

// rawExchange sends a capsule and waits for the next completion.
func rawExchange(t testing.TB, c *dat.Conn, capsule []byte) nvme.Completion {
	t.Helper()
	require.NoError(t, c.SendBytes(capsule))
	return rawCompletion(t, c)
}

// rawCompletion waits for the next completion.
func rawCompletion(t testing.TB, c *dat.Conn) nvme.Completion {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	b, err := c.Receive(ctx)
	require.NoError(t, err)
	defer c.Release(b)
	completion, err := nvme.ParseCompletion(b.Bytes())
	require.NoError(t, err)
	return completion
}

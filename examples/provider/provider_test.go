package provider

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	"godat/hw/hwtest"
	dat "godat/runtime"
)

func TestContract(t *testing.T) {
	hwtest.TestProvider(t, hwtest.Config{Provider: new(Provider)})
}

func TestWhatTheProviderLeavesOutIsNotSupported(t *testing.T) {
	ia, err := dat.Open(t.Context(), "small", dat.WithProvider(new(Provider)))
	require.NoError(t, err)
	pz, err := ia.NewPZ()
	require.NoError(t, err)
	_, err = ia.NewSRQ(pz, 1, 1)
	assert.ErrorIs(t, err, errors.ErrUnsupported)
	_, err = pz.NewRMR()
	assert.ErrorIs(t, err, errors.ErrUnsupported)
	require.NoError(t, ia.Close())
}

func Example() {
	ctx := context.Background()
	ia, _ := dat.Open(ctx, "small", dat.WithProvider(new(Provider)))
	ln, _ := ia.Listen(ctx, "", dat.ConnConfig{Depth: 4, Message: 64})
	client, _ := ln.Dial(ln.Addr(), nil)
	for client != nil {
		select {
		case ev := <-ln.Requests():
			_, _ = ln.Accept(ep.RequestOf(ev), nil)
		case ev := <-ln.Events():
			switch c := dat.ConnOf(ev); {
			case ev.Number == event.Established && c == client:
				_ = c.SendBytes([]byte("hello"))
			case ev.Op == hw.OpRecv && ev.Number.Completion():
				fmt.Printf("%s\n", c.Message(ev).Bytes())
				client = nil
			}
		}
	}
	fmt.Println(ia.Close())
	// Output:
	// hello
	// <nil>
}

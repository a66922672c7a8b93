package runtime

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/loop"
)

func TestOpenFindsProvidersByName(t *testing.T) {
	for _, name := range []string{"loop", "loop:", "loop:open-test", "loop:a:b"} {
		ia := open(t, name)
		assert.Equal(t, name, ia.Name())
		assert.Equal(t, "loop", ia.Attr().Provider)
	}
	for _, name := range []string{"iwarp", "iwarp:", "iwarp:127.0.0.1", "iwarp:::1"} {
		assert.Equal(t, "iwarp", open(t, name).Attr().Provider, name)
	}
	assert.Equal(t, "::1", open(t, "iwarp:::1").Attr().Device)
	assert.Equal(t, "open-test", open(t, "loop:open-test").Attr().Device)
	assert.Equal(t, "a:b", open(t, "loop:a:b").Attr().Device)
	assert.Equal(t, "given", open(t, "loop:given", WithProvider(loop.New())).Attr().Device)
}

func TestOpenRefusesWhatItCantOpen(t *testing.T) {
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	expired, stop := context.WithTimeout(context.Background(), -1)
	defer stop()
	bg := context.Background()
	cases := map[string]struct {
		ctx  context.Context
		name string
		opts []Option
		typ  hw.Type
		sub  hw.Subtype
	}{
		"no name":               {bg, "", nil, hw.InvalidParameter, hw.Arg1},
		"a name of 256 bytes":   {bg, strings.Repeat("x", 256), nil, hw.InvalidParameter, hw.Arg1},
		"an unknown provider":   {bg, "nothing:0", nil, hw.ProviderNotFound, hw.NameNotRegistered},
		"another provider":      {bg, "iwarp", []Option{WithProvider(loop.New())}, hw.InvalidParameter, hw.Arg1},
		"an unknown parameter":  {bg, "loop", []Option{WithParams(map[string]string{"x": "y"})}, hw.InvalidParameter, hw.Arg1},
		"a pool of less than 0": {bg, "loop", []Option{WithUpcalls(-1)}, hw.InvalidParameter, 0},
		"a context canceled":    {canceled, "loop", nil, hw.InterruptedCall, 0},
		"a context expired":     {expired, "loop", nil, hw.TimeoutExpired, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			ia, err := Open(c.ctx, c.name, c.opts...)
			require.Nil(t, ia)
			requireCode(t, err, c.typ, c.sub)
		})
	}
	_, err := Open(bg, "nothing")
	assert.Contains(t, err.Error(), "registered: ")
	assert.Contains(t, err.Error(), "loop")
}

// slowProvider opens a device when the test allows it.
type slowProvider struct {
	entered chan struct{}
	gate    chan struct{}
	err     error
	closed  chan struct{}
}

func (p *slowProvider) Name() string { return "slow" }

func (p *slowProvider) Open(cfg hw.OpenConfig) (hw.Device, error) {
	if p.entered != nil {
		close(p.entered)
	}
	<-p.gate
	if p.err != nil {
		return nil, p.err
	}
	dev, err := loop.New().Open(cfg)
	return &tellClose{dev, p.closed}, err
}

type tellClose struct {
	hw.Device
	closed chan struct{}
}

func (d *tellClose) Close() error {
	defer close(d.closed)
	return d.Device.Close()
}

func TestOpenEndsWithItsContextAndTheDeviceIsClosedWhenItComes(t *testing.T) {
	p := &slowProvider{entered: make(chan struct{}), gate: make(chan struct{}), closed: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		_, err := Open(ctx, "slow:x", WithProvider(p))
		done <- err
	}()
	<-p.entered
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	close(p.gate)
	<-p.closed
}

func TestOpenPassesTheProvidersError(t *testing.T) {
	p := &slowProvider{gate: make(chan struct{}), err: os.ErrPermission}
	close(p.gate)
	_, err := Open(context.Background(), "slow", WithProvider(p))
	requireCode(t, err, hw.InternalError, 0)
	require.ErrorIs(t, err, os.ErrPermission)
	p.err = errors.ErrUnsupported
	_, err = Open(context.Background(), "slow", WithProvider(p))
	requireCode(t, err, hw.ModelNotSupported, 0)
}

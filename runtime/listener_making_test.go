package runtime

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/hw/loop"
)

// slowQPs opens loop devices on which each queue pair takes as long as the test wants.
type slowQPs struct {
	hw.Device
	began, on chan struct{}
}

func (*slowQPs) Name() string { return "slow" }

func (k *slowQPs) Open(cfg hw.OpenConfig) (dev hw.Device, err error) {
	k.Device, err = loop.New().Open(cfg)
	return k, err
}

func (k *slowQPs) NewQP(cfg hw.QPConfig) (hw.QP, error) {
	k.began <- struct{}{}
	<-k.on
	return k.Device.NewQP(cfg)
}

// A close gives a Setup up that does not return. The rest of a connection's making it awaits, also behind that.
func TestAListenerThatClosesLeavesNoConnectionHalfMade(t *testing.T) {
	for name, end := range map[string]func(*Listener) error{
		"Close":    (*Listener).Close,
		"Shutdown": func(l *Listener) error { return l.Shutdown(within(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			k := &slowQPs{began: make(chan struct{}), on: make(chan struct{})}
			server, client := open(t, "slow", WithProvider(k)), open(t, "loop")
			server.hookTime = time.Millisecond
			l := listen(t, server, ConnConfig{})
			dialed := make(chan error, 1)
			go func() {
				_, err := client.Dial(context.Background(), l.Addr(), ConnConfig{})
				dialed <- err
			}()
			request := ep.RequestOf(nextEvent(t, l.Requests()))
			accepted, ended := make(chan error, 1), make(chan error, 1)
			go func() {
				_, err := l.Accept(request, nil)
				accepted <- err
			}()
			<-k.began
			go func() { ended <- end(l) }()
			require.Eventually(t, func() bool { return errorOf(l.psp.Load().Query()) != nil }, patience, time.Millisecond)
			close(k.on)
			require.NoError(t, answer(t, ended))
			_ = answer(t, accepted) // an error, unless the connection was up before the close came to it
			_ = answer(t, dialed)
			assert.Empty(t, l.list())
			require.NoError(t, server.CloseGraceful())
		})
	}
}

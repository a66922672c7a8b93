package soft

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// queuePair is one as a provider makes it.
type queuePair struct {
	hw.QP
	base
}

type base = QP

type nothing struct{}

func (nothing) Complete([]hw.WC)                     {}
func (nothing) Established(hw.ConnInfo)              {}
func (nothing) Refused(hw.Reason, []byte, *hw.Cause) {}
func (nothing) Down(hw.Reason, *hw.Cause)            {}

func TestAWindowIsAskedForBesideTheCloseOfItsQueuePair(t *testing.T) {
	d := new(Device)
	d.Init(Config{Provider: "soft", Attr: Common(hw.Attr{})})
	z, err := d.NewZone()
	require.NoError(t, err)
	for range 500 {
		q := new(queuePair)
		require.NoError(t, q.Open(d, &hw.QPConfig{Zone: z, SendSink: nothing{}, RecvSink: nothing{}, Facts: nothing{}}, nil))
		var both sync.WaitGroup
		both.Go(func() { q.Free() })
		both.Go(func() {
			if w, err := d.NewWindow(z, q); err == nil {
				assert.NoError(t, w.Close())
			} else {
				assert.ErrorIs(t, err, hw.ErrInvalidHandle)
			}
		})
		both.Wait()
	}
}

package runtime

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
)

// A server makes each connection as deep as its peer asks for.
func TestAConnectionIsAcceptedWithSettingsOfItsOwn(t *testing.T) {
	for name, apart := range map[string]bool{"one channel": false, "a channel each": true} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, ia *IA) {
				l := listen(t, ia, ConnConfig{Depth: 8, Message: 64, Apart: apart, Refusal: []byte("refused")})
				begin := func(depth int) (accepted error, dialed error) {
					done := make(chan error, 1)
					go func() {
						c, err := ia.Dial(within(t), l.Addr(), ConnConfig{Depth: depth, Private: []byte{byte(depth)}})
						if err == nil {
							assert.Equal(t, "welcome", string(c.Private()[:len("welcome")]))
							err = c.Close()
						}
						done <- err
					}()
					cr := ep.RequestOf(nextEvent(t, l.Requests()))
					asked, err := cr.Query()
					require.NoError(t, err)
					c, err := l.AcceptWith(cr, ConnConfig{Depth: int(asked.Private[0]), Message: 128, Apart: !apart, Private: []byte("welcome")})
					if err == nil {
						assert.Equal(t, depth, c.cfg.Depth)
						assert.Equal(t, 128, c.cfg.Message)
						for !nextEvent(t, c.Events()).Ended() {
							assert.Equal(t, apart, l.Events() == nil)
						}
						require.NoError(t, c.Close())
					}
					return err, <-done
				}
				for _, depth := range []int{1, 3, 8} {
					accepted, dialed := begin(depth)
					require.NoError(t, accepted)
					require.NoError(t, dialed)
				}
				accepted, dialed := begin(100)
				if apart {
					require.NoError(t, accepted, "its channel is as long as it needs")
					require.NoError(t, dialed)
				} else {
					require.ErrorIs(t, accepted, hw.ErrInvalidParameter, "the channel has no room for its events")
					require.Error(t, dialed)
					cause := new(hw.Cause)
					require.ErrorAs(t, dialed, &cause)
					assert.Equal(t, "refused", string(cause.Private[:len("refused")]))
				}
				require.NoError(t, l.Close())
				_, err := (*Listener)(nil).AcceptWith(nil, ConnConfig{})
				require.Error(t, err)
			})
		})
	}
}

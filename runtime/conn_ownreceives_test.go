package runtime

import (
	"testing"

	"godat/hw"
	"godat/mem"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A program that posts its own receives has its messages where it wants them, an event of
// each send, and all cookies.
func TestAProgramPostsItsOwnReceives(t *testing.T) {
	for name, cookie := range map[string]uint64{"small cookies": 1, "cookies with the highest bits": sendCookie | 1} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, ia *IA) {
				const depth, rounds, size = 4, 10, 8
				cfg := ConnConfig{Depth: depth, OwnReceives: true, Setup: func(c *Conn) ([]byte, error) {
					memory, err := c.Alloc(2*size, hw.LocalRead|hw.LocalWrite)
					if err != nil {
						return nil, err
					}
					c.Context = memory
					return nil, c.Endpoint.PostRecv(cookie, hw.Default, memory.Segment(0, size))
				}}
				l, client, server := both(t, ia, cfg)
				from, to := client.Context.(*mem.LMR), server.Context.(*mem.LMR)
				for round := range rounds {
					message := append([]byte("message"), byte(round))
					copy(from.Bytes()[size:], message)
					require.NoError(t, client.Endpoint.PostSend(cookie+1, hw.Default, from.Segment(size, size)))
					sent, came := nextEvent(t, client.Events()), nextEvent(t, server.Events())
					require.NoError(t, sent.Err())
					assert.Equal(t, cookie+1, sent.Cookie)
					require.NoError(t, came.Err())
					assert.Equal(t, cookie, came.Cookie)
					assert.Nil(t, server.Message(came))
					assert.Equal(t, message, to.Bytes()[:came.Length])
					require.NoError(t, server.Endpoint.PostRecv(cookie, hw.Default, to.Segment(0, size)))
				}
				assert.Nil(t, client.Buffer())
				err := client.SendBytes([]byte("x"))
				require.ErrorIs(t, err, hw.ErrInvalidState)
				assert.ErrorContains(t, err, "ConnConfig.OwnReceives")
				_, err = client.WaitBuffer(t.Context())
				require.ErrorIs(t, err, hw.ErrInvalidState)
				require.NoError(t, client.Close())
				require.NoError(t, l.Close())
			})
		})
	}
}

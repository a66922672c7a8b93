package runtime

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// A Dial whose context runs out matches what programs test for, and says how far it had come.
func TestADialThatItsContextEndsSaysWhy(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		l := listen(t, ia, ConnConfig{}) // its program never answers
		why := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(context.Background(), 50*time.Millisecond, why)
		defer cancel()
		_, err := ia.Dial(ctx, l.Addr(), ConnConfig{})
		for _, target := range []error{why, hw.ErrTimeout, context.DeadlineExceeded, os.ErrDeadlineExceeded} {
			require.ErrorIs(t, err, target)
		}
		assert.ErrorContains(t, err, l.Addr())
		assert.ErrorContains(t, err, "TIMED_OUT", "the provider's word")

		ctx, stop := context.WithCancelCause(context.Background())
		time.AfterFunc(10*time.Millisecond, func() { stop(why) })
		_, err = ia.Dial(ctx, l.Addr(), ConnConfig{})
		require.ErrorIs(t, err, why)
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, hw.ErrTimeout)
		assert.ErrorContains(t, err, "the peer had not answered")

		_, err = ia.Dial(context.Background(), l.Addr(), ConnConfig{Timeout: 20 * time.Millisecond})
		require.ErrorIs(t, err, hw.ErrTimeout)
		require.NoError(t, l.Close())
	})
}

// What listens at the address may be no peer of iWARP at all.
func TestADialOfAnotherProtocolSaysThatTCPIsConnected(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0") // whose peers wait to be accepted
	require.NoError(t, err)
	defer ln.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err = open(t, "iwarp:127.0.0.1").Dial(ctx, ln.Addr().String(), ConnConfig{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorContains(t, err, "TCP is connected")
	assert.ErrorContains(t, err, "another protocol")
}

func TestACallOnAClosedAdapterMatchesErrClosed(t *testing.T) {
	ia := open(t, "loop")
	require.NoError(t, ia.Close())
	_, dialed := ia.Dial(context.Background(), "loop:1", ConnConfig{})
	_, listened := ia.Listen(context.Background(), "", ConnConfig{})
	_, made := ia.NewPZ()
	for _, err := range []error{dialed, listened, made, ia.CloseGraceful()} {
		requireCode(t, err, hw.InvalidHandle, hw.HandleIA)
		assert.ErrorIs(t, err, net.ErrClosed)
	}
}

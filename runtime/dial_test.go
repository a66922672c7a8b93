package runtime

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

func TestADialWithoutAnAnswerEndsWithItsTimeout(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		mute := listen(t, ia, ConnConfig{}) // its program never answers
		deaf := mute.Addr()
		if ia.attr.Provider == "iwarp" {
			ln, err := net.Listen("tcp", "127.0.0.1:0") // nor does this one's provider
			require.NoError(t, err)
			defer ln.Close()
			deaf = ln.Addr().String()
		}
		cfg := ConnConfig{Timeout: 20 * time.Millisecond}
		_, err := ia.Dial(t.Context(), deaf, cfg)
		require.ErrorIs(t, err, EventError(TimedOut))
		l := listen(t, ia, cfg)
		c, err := l.Dial(deaf, nil)
		require.NoError(t, err)
		ev := nextEvent(t, l.Events())
		assert.Equal(t, TimedOut, ev.Number)
		assert.True(t, ev.Ended())
		assert.Same(t, c, ConnOf(ev))
		require.NoError(t, l.Close())
		require.NoError(t, mute.Close())
	})
}

func TestADialHasATimeoutUnlessTheProgramWantsNone(t *testing.T) {
	for set, want := range map[time.Duration]time.Duration{0: 30 * time.Second, -1: 0, time.Second: time.Second} {
		cfg := ConnConfig{Timeout: set}
		require.NoError(t, cfg.complete("test", hw.Attr{MaxMessage: 1 << 20}))
		assert.Equal(t, want, cfg.Timeout)
	}
}

func TestAnErrorOfAnAddressNamesTheCallOfTheProgramAlone(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		_, dial := ia.Dial(t.Context(), "nowhere", ConnConfig{})
		_, listening := ia.Listen(t.Context(), "no.such.host.invalid:1", ConnConfig{})
		l := listen(t, ia, ConnConfig{})
		_, dialing := l.Dial("nowhere", nil)
		require.NoError(t, l.Close())
		for name, err := range map[string]error{
			"runtime.Dial nowhere: ": dial, "runtime.Listen no.such.host.invalid:1: ": listening, "runtime.Listener.Dial nowhere: ": dialing,
		} {
			require.ErrorIs(t, err, hw.ErrInvalidAddress)
			assert.True(t, strings.HasPrefix(err.Error(), name), "%v", err)
			assert.NotContains(t, err.Error(), "ep.")
		}
	})
}

func TestConnectionsThatWereDialedToOneAddressHaveNamesOfTheirOwn(t *testing.T) {
	onEach(t, func(t *testing.T, ia *IA) {
		l := listen(t, ia, ConnConfig{Depth: 1, Message: 64})
		names := make(map[string]bool)
		for range 3 {
			c, err := l.Dial(l.Addr(), nil)
			require.NoError(t, err)
			assert.Contains(t, c.String(), l.Addr())
			names[c.String()] = true
			accept(t, l)
		}
		assert.Len(t, names, 3)
		require.NoError(t, l.Close())
	})
}

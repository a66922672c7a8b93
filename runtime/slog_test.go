package runtime

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

func TestAnAdapterLogsBySlogWithItsLevels(t *testing.T) {
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{
		Level: slog.LevelWarn,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	ia, err := Open(within(t), "loop", WithSlog(nil), WithSlog(log))
	require.NoError(t, err)
	ia.async.report(hw.AsyncEvent{Kind: hw.AsyncDeviceFatal, Err: errors.New("smoke")})
	require.NoError(t, ia.Close())
	assert.Equal(t, "level=ERROR msg=\"asynchronous error\" kind=\"device fatal\" error=smoke\n", text.String())
}

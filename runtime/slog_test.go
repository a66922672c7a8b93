package runtime

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
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

// logged is the attribute of a line that a handler of JSON makes of a handle.
func logged(t *testing.T, handle any) (said any) {
	t.Helper()
	var text bytes.Buffer
	slog.New(slog.NewJSONHandler(&text, nil)).Info("look", "handle", handle)
	require.Equal(t, 1, bytes.Count(text.Bytes(), []byte("\n")), "one line")
	require.NotContains(t, text.String(), "panic")
	var line struct{ Handle any }
	require.NoError(t, json.Unmarshal(text.Bytes(), &line), text.String())
	return line.Handle
}

// A handle has the name that String tells in a log of JSON, too, which would show its exported
// fields, or nothing. A Batch is events, which have names.
func TestEachHandleSaysInALogWhatItIsAtAnyTime(t *testing.T) {
	b := newBad(t)
	for _, m := range makers {
		if _, events := m.handle.(*evd.Batch); events {
			continue
		}
		t.Run(reflect.TypeOf(m.handle).Elem().Name(), func(t *testing.T) {
			require.Implements(t, (*fmt.Stringer)(nil), m.handle)
			require.Implements(t, (*slog.LogValuer)(nil), m.handle)
			assert.Equal(t, m.handle.(fmt.Stringer).String(), logged(t, m.handle), "nil")
			w := *b
			w.t = t
			live := m.live(&w)
			assert.NotEmpty(t, logged(t, live))
			if m.close != nil {
				m.close(live)
				assert.NotEmpty(t, logged(t, live), "closed")
			}
		})
	}
}

func TestAConnectionSaysInALogWhoItsPeerIsAndItsState(t *testing.T) {
	ia := open(t, "loop")
	l, client, server := both(t, ia, ConnConfig{Conns: 5})
	assert.Equal(t, map[string]any{"peer": client.String(), "id": float64(client.ID()), "state": "CONNECTED"}, logged(t, client))
	assert.Equal(t, map[string]any{"address": l.Addr(), "connections": 1.0, "of": 5.0}, logged(t, l))
	assert.Equal(t, map[string]any{"name": "loop", "provider": "loop", "device": "loop"}, logged(t, ia))
	e, ok := logged(t, server.Endpoint).(map[string]any)
	require.True(t, ok)
	assert.Equal(t, server.RemoteAddr().String(), e["remote"])
	assert.Equal(t, "CONNECTED", e["state"])
	assert.Contains(t, logged(t, l.events), "queued")
}

package runtime_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"

	dat "godat/runtime"
)

// value is a LogValuer of a test.
type value struct{ slog.Value }

func (v value) LogValue() slog.Value { return v.Value }

func TestAFieldOfZapHasThePartsOfAHandle(t *testing.T) {
	fields := func(v slog.LogValuer) map[string]any {
		to := zapcore.NewMapObjectEncoder()
		dat.ZapField("it", v).AddTo(to)
		return to.Fields
	}
	group := value{slog.GroupValue(
		slog.String("s", "text"), slog.Int("i", -1), slog.Uint64("u", 1<<63), slog.Bool("b", true), slog.Duration("d", time.Second),
		slog.Any("e", errors.New("broken")), slog.Any("v", value{slog.StringValue("later")}), slog.Group("g", slog.Int("i", 2)),
	)}
	assert.Equal(t, map[string]any{"it": map[string]any{
		"s": "text", "i": int64(-1), "u": uint64(1 << 63), "b": true, "d": time.Second, "e": "broken", "v": "later", "g": map[string]any{"i": int64(2)},
	}}, fields(group))
	assert.Equal(t, map[string]any{"it": map[string]any{"name": "x"}}, fields(value{slog.StringValue("x")}))
	assert.Empty(t, fields(nil))

	ia, err := dat.Open(t.Context(), "loop")
	require.NoError(t, err)
	defer func() { require.NoError(t, ia.Close()) }()
	ln, err := ia.Listen(t.Context(), "loop:0", dat.ConnConfig{Conns: 16})
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"it": map[string]any{"address": ln.Addr(), "connections": int64(0), "of": int64(16)}}, fields(ln))
	var none *dat.Conn
	assert.Equal(t, map[string]any{"it": map[string]any{"name": none.String()}}, fields(none))
}

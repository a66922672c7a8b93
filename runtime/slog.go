package runtime

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// WithSlog sets the adapter's logger. The adapter logs its opening and closing,
// connections that break, attempts that a listener drops because there are too many or
// no descriptor is left, and errors that belong to no call; it logs nothing on the data
// path. Without the option, and with nil, it logs nothing at all. The adapter's name is the
// attribute "ia". Every handle is a slog.LogValuer.
func WithSlog(log *slog.Logger) Option {
	if log == nil {
		return func(*config) {}
	}
	return withLogger(zap.New(slogCore{log.Handler()}))
}

// slogCore hands zap's entries to a handler of slog's.
type slogCore struct{ handler slog.Handler }

// slogLevel is slog's level for zap's. The levels have the same order; slog's are four apart, and
// end with errors.
func slogLevel(l zapcore.Level) slog.Level { return slog.Level(4 * min(l, zapcore.ErrorLevel)) }

// Enabled implements [zapcore.LevelEnabler].
func (c slogCore) Enabled(l zapcore.Level) bool {
	return c.handler.Enabled(context.Background(), slogLevel(l))
}

// With implements [zapcore.Core].
func (c slogCore) With(fields []zapcore.Field) zapcore.Core {
	return slogCore{c.handler.WithAttrs(slogAttrs(fields))}
}

// Check implements [zapcore.Core].
func (c slogCore) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return to.AddCore(e, c)
	}
	return to
}

// Write implements [zapcore.Core].
func (c slogCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	r := slog.NewRecord(e.Time, slogLevel(e.Level), e.Message, e.Caller.PC)
	r.AddAttrs(slogAttrs(fields)...)
	return c.handler.Handle(context.Background(), r)
}

// Sync implements [zapcore.Core]: a handler keeps nothing back.
func (slogCore) Sync() error { return nil }

// slogAttrs are zap's fields as slog's attributes. A field may make several.
func slogAttrs(fields []zapcore.Field) (attrs []slog.Attr) {
	for _, f := range fields {
		values := zapcore.NewMapObjectEncoder()
		f.AddTo(values)
		for _, key := range slices.Sorted(maps.Keys(values.Fields)) {
			attrs = append(attrs, slog.Any(key, values.Fields[key]))
		}
	}
	return attrs
}

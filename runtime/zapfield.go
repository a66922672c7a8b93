package runtime

import (
	"log/slog"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// ZapField is a handle as a field of zap's with parts: what the handle's LogValue tells log/slog.
// zap.Any and zap.Stringer take a handle too, as its String. The handle is asked when the
// entry is written. A nil handle is no field.
func ZapField(key string, handle slog.LogValuer) zap.Field {
	if handle == nil {
		return zap.Skip()
	}
	return zap.Object(key, zapObject{handle})
}

// zapObject hands a value of slog's to zap.
type zapObject struct{ slog.LogValuer }

// MarshalLogObject implements [zapcore.ObjectMarshaler].
func (o zapObject) MarshalLogObject(to zapcore.ObjectEncoder) error {
	v := o.LogValue().Resolve()
	if v.Kind() != slog.KindGroup {
		return addAttr(to, slog.Attr{Key: "name", Value: v})
	}
	return addGroup(to, v.Group())
}

func addGroup(to zapcore.ObjectEncoder, attrs []slog.Attr) error {
	for _, a := range attrs {
		if err := addAttr(to, a); err != nil {
			return err
		}
	}
	return nil
}

func addAttr(to zapcore.ObjectEncoder, a slog.Attr) error {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindGroup:
		return to.AddObject(a.Key, zapcore.ObjectMarshalerFunc(func(to zapcore.ObjectEncoder) error { return addGroup(to, v.Group()) }))
	case slog.KindString:
		to.AddString(a.Key, v.String())
	default:
		zap.Any(a.Key, v.Any()).AddTo(to)
	}
	return nil
}

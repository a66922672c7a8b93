package runtime

import (
	"context"
	"log/slog"

	"godat/hw"
)

// Describe opens an adapter, returns the attributes of the adapter and of its provider, and closes
// the adapter. The name and the errors are those of [Open] and [IA.Close]. It answers to
// dat_ib_open_query, and leaves nothing for dat_ib_close_query to do.
func Describe(ctx context.Context, name string, opts ...Option) (hw.Attr, error) {
	ia, err := Open(ctx, name, append(opts[:len(opts):len(opts)], WithAsync(nil))...)
	if err != nil {
		return hw.Attr{}, err
	}
	return ia.Attr(), ia.Close()
}

// String names the adapter. It may be called at any time, like the String of every
// handle.
func (ia *IA) String() string {
	if ia == nil {
		return "IA(nil)"
	}
	return "IA(" + ia.name + ")"
}

// LogValue names the adapter, its provider and its device, for log/slog. It may be called at
// any time, like the LogValue of every handle.
func (ia *IA) LogValue() slog.Value {
	if ia == nil {
		return slog.StringValue(ia.String())
	}
	return slog.GroupValue(slog.String("name", ia.name),
		slog.String("provider", ia.attr.Provider), slog.String("device", ia.attr.Device))
}

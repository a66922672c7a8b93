package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"godat/hw"
	dat "godat/runtime"
)

// addressPause is the longest pause before a server looks again whether its address is free: the calls of
// all clients wait meanwhile.
const addressPause = 50 * time.Millisecond

// listen is [dat.IA.Listen]. With Config.Await it tries again while the address is in use.
func (cfg *Config) listen(ctx context.Context, ia *dat.IA, address string) (*dat.Listener, error) {
	ln, err := ia.Listen(ctx, address, cfg.conn())
	if err != nil && cfg.Await && cfg.Log != nil && errors.Is(err, hw.ErrConnQualInUse) {
		cfg.Log.LogAttrs(ctx, slog.LevelWarn, "waiting for the address", slog.Any("error", err))
	}
	pauses := cfg.newPauses()
	for pauses.MaxInterval = min(pauses.MaxInterval, addressPause); cfg.Await && errors.Is(err, hw.ErrConnQualInUse); {
		if cause := wait(ctx, pauses); cause != nil {
			return nil, fmt.Errorf("%w, while the address is in use: %w", cause, err)
		}
		ln, err = ia.Listen(context.WithoutCancel(ctx), address, cfg.conn()) // wait has looked at ctx
	}
	return ln, err
}

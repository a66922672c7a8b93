package runtime

import (
	"context"
	"errors"
	"maps"
	"slices"

	"go.uber.org/zap"

	"godat/ep"
	"godat/hw"
	_ "godat/hw/iwarp" // every program has these two
	_ "godat/hw/loop"
	"godat/internal/delivery"
	"godat/internal/door"
	"godat/mem"
	"godat/runtime/internal/polling"
)

// Open opens an interface adapter. name is that of a registered provider, which may be
// followed by a colon and one of the provider's devices: "loop", "iwarp", "ibv:mlx5_0".
// The providers loop and iwarp are always registered; importing the package of another
// one registers it. If no provider has the name, Open looks for it in DAT's static
// registry ("ofa-v2-ib0"), which tells the provider and the device; see [Providers].
// ctx bounds the opening, not the adapter's life.
//
// An empty name, one of more than 255 bytes, a nil context and a nil option are
// INVALID_PARAMETER. A name, version or thread-safety (see [WithVersion],
// [WithThreadSafe]) that no provider has is PROVIDER_NOT_FOUND, with the subtype that
// says which. A ctx that ends first is TIMEOUT_EXPIRED or INTERRUPTED_CALL. If the
// provider panics, Open frees everything and panics with a [*ProviderPanic]. It answers
// to dat_ia_open and dat_ia_openv.
func Open(ctx context.Context, name string, opts ...Option) (*IA, error) {
	cfg := config{log: zap.NewNop()}
	switch {
	case ctx == nil:
		return nil, nilContext("runtime.Open")
	case slices.ContainsFunc(opts, func(o Option) bool { return o == nil }):
		return nil, hw.Errorf("runtime.Open", hw.InvalidParameter, hw.NoSubtype, "a nil option")
	}
	for _, o := range opts {
		o(&cfg)
	}
	if cfg.trace != "" {
		cfg.params = maps.Clone(cfg.params)
		if cfg.params == nil {
			cfg.params = make(map[string]string)
		}
		cfg.params["trace"] = cfg.trace
	}
	from, err := find("runtime.Open", name, &cfg)
	if err != nil {
		return nil, err
	}
	pool, err := newPool(cfg.upcalls)
	if err != nil {
		from.release()
		return nil, err
	}
	ia := new(IA)
	async, err := newAsyncErrors(&cfg, ia)
	if err != nil {
		pool.release()
		from.release()
		return nil, err
	}
	o := &opening{
		from: from, pool: pool, async: async, done: make(chan struct{}),
		cfg: hw.OpenConfig{Device: from.device, Params: from.params, Async: async.report},
	}
	dev, err := o.wait(ctx)
	if err != nil {
		return nil, err
	}
	ia.init(name, dev, &cfg, pool, async)
	ia.release = from.release
	ia.lists.dispatchers.drop = ia.lists.dropDispatcher
	if err := ia.startPoller(&cfg); err != nil {
		return nil, errors.Join(err, ia.Close())
	}
	async.open(ia)
	ia.log.Info("opened", zap.String("provider", ia.attr.Provider), zap.String("device", ia.attr.Device))
	return ia, nil
}

// startPoller makes the parts of the adapter, and for a polled device starts its
// poller.
func (ia *IA) startPoller(cfg *config) error {
	ia.domain = mem.NewDomain(door.Key{}, ia.dev, ia)
	breaks := &breakLog{log: ia.log, pool: ia.pool}
	parts := ep.AdapterConfig{
		Device: ia.dev, IA: ia, Domain: ia.domain, Async: ia.async.to, Owner: ownerOf,
		Broke:   func(cause *hw.Cause) { breaks.write("connection broke", cause) },
		Dropped: func(cause *hw.Cause) { breaks.write("connection attempt dropped", cause) },
	}
	dev, polled := ia.dev.(hw.Polled)
	if polled {
		ia.polling = polling.New(dev, ia.attr.MaxCQDepth, polling.Config{CPUs: cfg.poller.CPUs, SpinRounds: cfg.poller.SpinRounds}, ia.async.report)
		parts.CQs = ia.polling
	} else if p, ok := ia.dev.(hw.Progresser); ok {
		ia.progress = progressOf(p)
	}
	ia.adapter = ep.NewAdapter(door.Key{}, parts)
	if cfg.latency {
		ia.adapter.MeasureLatency(door.Key{})
	}
	if polled {
		if err := ia.polling.Start(ia.adapter); err != nil {
			return hw.Errorf("runtime.Open", hw.InvalidParameter, hw.NoSubtype, "PollerConfig.CPUs%v: %w", cfg.poller.CPUs, err)
		}
	}
	return nil
}

// progressOf returns what the adapter's dispatchers call when a consumer finds too few
// events, or a poster no room. A poster may hold locks that deliveries take, so it
// leaves the work to the device's own goroutines.
func progressOf(dev hw.Progresser) func(delivery.PollHint) {
	return func(hint delivery.PollHint) {
		if hint != delivery.PollElsewhere {
			dev.Progress()
		}
	}
}

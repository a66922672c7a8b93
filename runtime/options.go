package runtime

import (
	"maps"

	"go.uber.org/zap"

	"godat/evd"
	"godat/hw"
)

// Option modifies how [Open] opens an adapter.
type Option func(*config)

type config struct {
	provider hw.Provider
	want     hw.Info
	params   map[string]string
	trace    string
	latency  bool
	log      *zap.Logger
	upcalls  int
	poller   PollerConfig
	async    *evd.Dispatcher
	hasAsync bool
}

// WithProvider opens the adapter on that provider, registered or not. The name given to
// Open must begin with the provider's. The adapter does not count as a use of a
// registered provider. With nil it is as if the option were not given.
func WithProvider(p hw.Provider) Option { return func(c *config) { c.provider = p } }

// WithVersion demands a provider of that version of the DAT API, for a program that was
// built for the version. A major version of 0 accepts any, as Open does without the
// option.
func WithVersion(major, minor int) Option {
	return func(c *config) { c.want.Major, c.want.Minor = major, minor }
}

// WithThreadSafe demands a provider that may be called from many goroutines.
func WithThreadSafe() Option { return func(c *config) { c.want.ThreadSafe = true } }

// WithParams gives the provider parameters of its own, as the fields of DAT's registry
// file do. Open fails if the provider does not know one of the keys. Those of iwarp are in
// [godat/hw/iwarp.Config].
func WithParams(params map[string]string) Option {
	params = maps.Clone(params)
	return func(c *config) { c.params = params }
}

// WithTrace writes what each connection over iwarp carries to a file in dir, as packets in
// the pcapng format that Wireshark reads, payloads included. Traced connections are slow. The
// environment variable GODATTRACE does the same for all adapters of a program. Open makes the
// directory. Providers that have no octets to show refuse the option as a parameter that they
// do not know. [ep.Endpoint.Trace] traces one connection that is up already.
func WithTrace(dir string) Option { return func(c *config) { c.trace = dir } }

// withLogger sets the logger that the adapter has inside.
func withLogger(log *zap.Logger) Option {
	return func(c *config) {
		if log != nil {
			c.log = log
		}
	}
}

// WithUpcalls is how many callbacks of dispatchers may run at once in the adapter's pool of goroutines; 0 means 64.
// Further callbacks get goroutines of their own, so that events don't wait for the callbacks of other dispatchers.
func WithUpcalls(n int) Option { return func(c *config) { c.upcalls = n } }

// WithPoller configures what empties the completion queues of a polled device. It has no
// effect on a device that completes by itself.
func WithPoller(p PollerConfig) Option { return func(c *config) { c.poller = p } }

// WithAsync sends asynchronous errors to d, whose streams include [event.StreamAsync]. d may
// serve several adapters, and can't be closed before them. With nil the adapter only
// logs the errors. Without the option the adapter makes a dispatcher of mode
// [evd.ModeQueue] for them. See [IA.Async].
func WithAsync(d *evd.Dispatcher) Option {
	return func(c *config) { c.async, c.hasAsync = d, true }
}

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
	log      *zap.Logger
	pool     PoolConfig
	poller   PollerConfig
	async    *evd.Dispatcher
	hasAsync bool
}

// WithProvider opens the adapter on that provider, registered or not. The name
// given to Open begins with the provider's. It does not count as a use of a
// registered provider.
func WithProvider(p hw.Provider) Option { return func(c *config) { c.provider = p } }

// WithVersion demands a provider of that version of the DAT API, as a consumer
// that was built for it does; a major version of 0 takes any, which is what Open
// does without the option.
func WithVersion(major, minor int) Option {
	return func(c *config) { c.want.Major, c.want.Minor = major, minor }
}

// WithThreadSafe demands a provider that may be called from many goroutines.
func WithThreadSafe() Option { return func(c *config) { c.want.ThreadSafe = true } }

// WithParams gives the provider settings of its own, as the fields of DAT's
// registry file do. Keys that it does not know make Open fail.
func WithParams(params map[string]string) Option {
	params = maps.Clone(params)
	return func(c *config) { c.params = params }
}

// WithLogger has the adapter log there: its life, and errors that belong to no
// call. Nothing is logged on the data path. Without it nothing is logged at all.
func WithLogger(log *zap.Logger) Option {
	return func(c *config) {
		if log != nil {
			c.log = log
		}
	}
}

// WithPool bounds the adapter's pool of goroutines.
func WithPool(p PoolConfig) Option { return func(c *config) { c.pool = p } }

// WithPoller configures the pinned poller, or has the program poll in its place. It
// has no effect on a device that completes by itself.
func WithPoller(p PollerConfig) Option { return func(c *config) { c.poller = p } }

// WithAsync sends asynchronous errors to d, which takes [StreamAsync], may serve
// several adapters, and can't be closed before them. nil drops the errors; they
// are logged in any case. Without the option the adapter makes a dispatcher of
// mode [ModeQueue] for them. See [IA.Async].
func WithAsync(d *Dispatcher) Option {
	return func(c *config) { c.async, c.hasAsync = d, true }
}

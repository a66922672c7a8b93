package ibv

import "godat/hw"

const opOpen = "ibv.Open"

func init() { hw.MustRegister(provider{}) }

// provider implements [hw.Provider].
type provider struct{}

// New makes the provider that importing the package registers, for programs that
// want one of their own.
func New() hw.Provider { return provider{} }

// Name implements [hw.Provider].
func (provider) Name() string { return "ibv" }

// Open implements [hw.Provider]. It loads the libraries, and says in one sentence
// what to install, or what else is missing.
func (provider) Open(cfg hw.OpenConfig) (hw.Device, error) {
	p, err := parseParams(cfg.Params)
	if err != nil {
		return nil, err
	}
	return open(cfg, p)
}

// Counters count what a device's data path has done since it was opened.
type Counters struct {
	Posts     uint64 // crossings into C that posted
	Polls     uint64 // crossings that polled
	Posted    uint64 // requests posted
	Polled    uint64 // completions handed on
	Doorbells uint64 // times the device was told of posted sends
}

// counted is a device of this package.
type counted interface{ counters() Counters }

// CountersOf reads the counters of a device of this package, wrapped or not; false
// for any other. It may be called from any goroutine.
func CountersOf(dev hw.Device) (Counters, bool) {
	for {
		if c, ok := dev.(counted); ok {
			return c.counters(), true
		}
		u, ok := dev.(interface{ Unwrap() hw.Device })
		if !ok {
			return Counters{}, false
		}
		dev = u.Unwrap()
	}
}

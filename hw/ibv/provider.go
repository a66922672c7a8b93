package ibv

import "godat/hw"

const opOpen = "ibv.Open"

func init() { hw.MustRegister(provider{}) }

// provider implements [hw.Provider].
type provider struct{}

// New returns a provider like the one that importing the package registers, for a
// program that wants to wrap it or to open devices without the registry.
func New() hw.Provider { return provider{} }

func (provider) Name() string { return "ibv" }

// Open implements [hw.Provider]. It loads the libraries when they are not loaded yet.
// Its error says in one sentence what to install, or what else is missing.
func (provider) Open(cfg hw.OpenConfig) (hw.Device, error) {
	p, err := parseParams(cfg.Params)
	if err != nil {
		return nil, err
	}
	return open(cfg, p)
}

// counters are the work of a device's data path since the device was opened.
type counters struct {
	Posts     uint64 // calls into C that posted requests
	Polls     uint64 // calls into C that polled
	Posted    uint64 // requests posted
	Polled    uint64 // completions that Poll returned
	Doorbells uint64 // doorbells rung for posted sends
}

// counted is a device of this package.
type counted interface{ count() counters }

// countersOf returns the counters of a device of this package, which may be wrapped;
// for any other device it returns false. The counters are not all read at one instant.
func countersOf(dev hw.Device) (counters, bool) {
	for {
		if c, ok := dev.(counted); ok {
			return c.count(), true
		}
		u, ok := dev.(interface{ Unwrap() hw.Device })
		if !ok {
			return counters{}, false
		}
		dev = u.Unwrap()
	}
}

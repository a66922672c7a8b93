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

package loop

import "godat/hw"

// Name is the provider's name, and that of its default device.
const Name = "loop"

func init() { hw.MustRegister(Provider{}) }

// Provider opens loop devices. It has no state; all devices of the process can
// reach each other.
type Provider struct{}

// Name returns "loop".
func (Provider) Name() string { return Name }

// Open opens a device under the name cfg.Device, "loop" if that is empty. It
// refuses any parameter with INVALID_PARAMETER.
func (Provider) Open(cfg hw.OpenConfig) (hw.Device, error) {
	for k := range cfg.Params {
		return nil, hw.Errorf("loop.Open", hw.InvalidParameter, hw.Arg1, "there is no parameter %q", k)
	}
	name := cfg.Device
	if name == "" {
		name = Name
	}
	return newDevice(name), nil
}

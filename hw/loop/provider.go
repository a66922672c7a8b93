package loop

import (
	"strconv"

	"godat/hw"
)

// Name is the provider's name, and that of its default device.
const Name = "loop"

func init() { hw.MustRegister(Provider{}) }

// Provider opens loop devices. It has no state; all devices of the process can
// reach each other.
type Provider struct{}

// Name returns "loop".
func (Provider) Name() string { return Name }

// Open opens a device under the name cfg.Device, "loop" if that is empty. It
// refuses a parameter other than handover, and a wrong value of it, with
// INVALID_PARAMETER.
func (Provider) Open(cfg hw.OpenConfig) (hw.Device, error) {
	handover, err := parseParams(cfg.Params)
	if err != nil {
		return nil, err
	}
	name := cfg.Device
	if name == "" {
		name = Name
	}
	return newDevice(name, handover), nil
}

// parseParams returns the value of handover.
func parseParams(params map[string]string) (handover uint32, err error) {
	const op = "loop.Open"
	handover = maxChunk
	for k, v := range params {
		if k != "handover" {
			return 0, hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "there is no parameter %q", k)
		}
		n, err := strconv.ParseUint(v, 10, 32)
		if err != nil || n > maxChunk {
			return 0, hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "handover %q: a number of bytes from 0 to %d", v, maxChunk)
		}
		handover = uint32(n)
	}
	return handover, nil
}

package loop

import (
	"strconv"

	"godat/hw"
)

// Name is the provider's name, and that of its default device.
const Name = "loop"

func init() { hw.MustRegister(New()) }

// New makes a provider. It has no state; all devices of the process can
// reach each other. The registered one is like it.
func New() hw.Provider { return provider{} }

type provider struct{}

// Name returns "loop".
func (provider) Name() string { return Name }

// Open opens a device under the name cfg.Device, "loop" if that is empty. It
// refuses an unknown parameter, and a wrong value, with INVALID_PARAMETER.
func (provider) Open(cfg hw.OpenConfig) (hw.Device, error) {
	s, err := parseParams(cfg.Params)
	if err != nil {
		return nil, err
	}
	name := cfg.Device
	if name == "" {
		name = Name
	}
	return newDevice(name, s), nil
}

// settings are the values of the parameters.
type settings struct {
	handover uint32
	waits    bool // notready=wait
}

func parseParams(params map[string]string) (s settings, err error) {
	const op = "loop.Open"
	s.handover = maxChunk
	for k, v := range params {
		switch k {
		case "handover":
			n, err := strconv.ParseUint(v, 10, 32)
			if err != nil || n > maxChunk {
				return s, hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "handover %q: a number of bytes from 0 to %d", v, maxChunk)
			}
			s.handover = uint32(n)
		case "notready":
			if v != "wait" && v != "fail" {
				return s, hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "notready %q: wait or fail", v)
			}
			s.waits = v == "wait"
		default:
			return s, hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "there is no parameter %q; those of loop are handover and notready", k)
		}
	}
	return s, nil
}

package ibv

import (
	"net/netip"
	"strconv"

	"godat/hw"
)

// The defaults of the parameters.
const (
	defaultInline     = 64
	defaultAckTimeout = 17 // 4.096 µs << 17 = 0.54 s for each of seven attempts
	defaultPort       = 1

	mostInline     = 4096
	mostAckTimeout = 31
	mostPort       = 255
)

// params are the parameters that a device was opened with.
type params struct {
	address    netip.Addr // the zero Addr means the device's first address
	tail       tailMode
	inline     int
	ackTimeout int
	port       int
	windows    bool
}

// tailMode says whether private data carries a tail; tailAuto adds one except on iWARP.
type tailMode uint8

const (
	tailAuto tailMode = iota
	tailOn
	tailOff
)

func parseParams(m map[string]string) (params, error) {
	p := params{inline: defaultInline, ackTimeout: defaultAckTimeout, port: defaultPort}
	for k, v := range m {
		var err error
		switch k {
		case "address":
			p.address, err = netip.ParseAddr(v)
		case "tail":
			p.tail, err = parseTail(v)
		case "windows":
			p.windows, err = parseSwitch(v)
		case "inline":
			p.inline, err = parseInt(v, 0, mostInline)
		case "ack_timeout":
			p.ackTimeout, err = parseInt(v, 0, mostAckTimeout)
		case "port":
			p.port, err = parseInt(v, 1, mostPort)
		default:
			return p, hw.Errorf(opOpen, hw.InvalidParameter, hw.NoSubtype, "unknown parameter %q", k)
		}
		if err != nil {
			return p, hw.Errorf(opOpen, hw.InvalidParameter, hw.NoSubtype, "parameter %s: %w", k, err)
		}
	}
	return p, nil
}

func parseTail(s string) (tailMode, error) {
	switch s {
	case "auto":
		return tailAuto, nil
	case "on":
		return tailOn, nil
	case "off":
		return tailOff, nil
	}
	return 0, strconv.ErrSyntax
}

func parseSwitch(s string) (bool, error) {
	if s != "on" && s != "off" {
		return false, strconv.ErrSyntax
	}
	return s == "on", nil
}

func parseInt(s string, least, most int) (int, error) {
	n, err := strconv.Atoi(s)
	if err == nil && (n < least || n > most) {
		err = strconv.ErrRange
	}
	return n, err
}

package ibv

import (
	"net/netip"
	"strconv"
	"time"

	"godat/hw"
)

// The defaults of the parameters.
const (
	defaultInline     = 64
	defaultAckTimeout = 17 // 4.096 µs << 17 = 0.54 s for each of seven attempts
	defaultPort       = 1
	defaultHopLimit   = 64
	defaultKeepalive  = 30 * time.Second // of pairs with peers of this package

	// defaultRetries is how often the transport repeats a packet that is not acknowledged.
	// Verbs allow seven, but soft-RoCE takes seven to mean without end, and then a read of
	// memory that the peer has freed meanwhile may never fail. Soft-RoCE also counts a packet
	// as not acknowledged for each time that a send waited for a receive, so there a wait of
	// some four seconds breaks the connection.
	defaultRetries = 6

	mostInline     = 4096
	mostAckTimeout = 31
	mostPort       = 255
	mostByte       = 255
	mostLevel      = 15
	mostFlow       = 1<<20 - 1
	mostPKey       = 1<<16 - 1
	mostRNR        = 31
	mostTries      = 7
)

// params are the parameters that a device was opened with.
type params struct {
	address    netip.Addr // the zero Addr means the device's first address
	tail       tailMode
	inline     int
	ackTimeout int
	port       int
	windows    bool
	relaxed    bool
	retries    int
	rnrTimer   int           // verbs' code; -1: as the queue pair's NotReady says
	rnrRetries int           // the same
	keepalive  time.Duration // of pairs; 0: off; negative: of those with peers of this package

	// The way to a peer that pairs.
	pathed                                          bool // one of them was given
	gid                                             gidChoice
	trafficClass, hopLimit, serviceLevel, flowLabel int
	pkey, mtu                                       int // 0: the port's first, and the port's
}

// tailMode says whether private data carries a tail; tailAuto adds one except on iWARP.
type tailMode uint8

const (
	tailAuto tailMode = iota
	tailOn
	tailOff
)

func parseParams(m map[string]string) (params, error) {
	p := params{
		inline: defaultInline, ackTimeout: defaultAckTimeout, port: defaultPort, hopLimit: defaultHopLimit,
		retries: defaultRetries, rnrTimer: -1, rnrRetries: -1, keepalive: -1, gid: gidChoice{index: -1},
	}
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
		case "relaxed":
			p.relaxed, err = parseSwitch(v)
		case "retries":
			p.retries, err = parseInt(v, 0, mostTries)
		case "rnr_timer":
			p.rnrTimer, err = parseInt(v, 0, mostRNR)
		case "keepalive":
			p.keepalive, err = parseKeepalive(v)
		case "rnr_retries":
			p.rnrRetries, err = parseInt(v, 0, mostTries)
		default:
			if p.pathed, err = p.parsePath(k, v); p.pathed {
				break
			}
			return p, hw.Errorf(opOpen, hw.InvalidParameter, hw.NoSubtype, "unknown parameter %q", k)
		}
		if err != nil {
			return p, hw.Errorf(opOpen, hw.InvalidParameter, hw.NoSubtype, "parameter %s: %w", k, err)
		}
	}
	return p, nil
}

// parsePath parses a parameter of the way to a peer that pairs, and reports whether k is one.
func (p *params) parsePath(k, v string) (known bool, err error) {
	switch k {
	case "gid":
		p.gid, err = parseGID(v)
	case "traffic_class":
		p.trafficClass, err = parseInt(v, 0, mostByte)
	case "hop_limit":
		p.hopLimit, err = parseInt(v, 0, mostByte)
	case "service_level":
		p.serviceLevel, err = parseInt(v, 0, mostLevel)
	case "flow_label":
		p.flowLabel, err = parseInt(v, 0, mostFlow)
	case "pkey":
		p.pkey, err = parseInt(v, 1, mostPKey)
	case "mtu":
		p.mtu, err = parseInt(v, 256, 4096)
		if err == nil && p.mtu&(p.mtu-1) != 0 {
			err = strconv.ErrRange
		}
	default:
		return p.pathed, nil
	}
	return true, err
}

// probes is how often a pair probes its peer; 0 means never. A peer that gives a place for a
// farewell is of this package, and takes the probe. Another's queue pair may refuse all writes,
// and break over it; so the program asks for that.
func (p *params) probes(peer hw.PairAddr) time.Duration {
	switch {
	case p.keepalive >= 0:
		return p.keepalive
	case peer.Farewell != 0:
		return defaultKeepalive
	}
	return 0
}

// parseKeepalive parses a time, of which 0 means never.
func parseKeepalive(s string) (time.Duration, error) {
	const least = 10 * time.Millisecond
	d, err := time.ParseDuration(s)
	if err == nil && d != 0 && d < least {
		err = strconv.ErrRange
	}
	return d, err
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
	v, err := strconv.ParseInt(s, 0, 32)
	n := int(v)
	if err == nil && (n < least || n > most) {
		err = strconv.ErrRange
	}
	return n, err
}

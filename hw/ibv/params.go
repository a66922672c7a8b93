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
		if known, err := p.parse(k, v); !known {
			return p, hw.Errorf(opOpen, hw.InvalidParameter, hw.NoSubtype, "unknown parameter %q", k)
		} else if err != nil {
			return p, paramError(opOpen, k, err)
		}
	}
	return p, nil
}

// parse parses a parameter, and reports whether there is one of that name.
func (p *params) parse(k, v string) (known bool, err error) {
	for _, n := range [...]struct {
		name        string
		to          *int
		least, most int
		path        bool // it is of the way to a peer that pairs
	}{
		{"inline", &p.inline, 0, 4096, false},
		{"ack_timeout", &p.ackTimeout, 0, 31, false},
		{"port", &p.port, 1, 255, false},
		{"retries", &p.retries, 0, 7, false},
		{"rnr_timer", &p.rnrTimer, 0, len(rnrDelays) - 1, false},
		{"rnr_retries", &p.rnrRetries, 0, 7, false},
		{"traffic_class", &p.trafficClass, 0, 255, true},
		{"hop_limit", &p.hopLimit, 0, 255, true},
		{"service_level", &p.serviceLevel, 0, 15, true},
		{"flow_label", &p.flowLabel, 0, 1<<20 - 1, true},
		{"pkey", &p.pkey, 1, 1<<16 - 1, true},
		{"mtu", &p.mtu, 256, 4096, true},
	} {
		if k == n.name {
			p.pathed = p.pathed || n.path
			*n.to, err = parseInt(v, n.least, n.most)
			if k == "mtu" && err == nil && p.mtu&(p.mtu-1) != 0 {
				err = strconv.ErrRange
			}
			return true, err
		}
	}
	switch k {
	case "address":
		p.address, err = netip.ParseAddr(v)
	case "tail":
		p.tail, err = parseTail(v)
	case "windows":
		p.windows, err = parseSwitch(v)
	case "relaxed":
		p.relaxed, err = parseSwitch(v)
	case "keepalive":
		p.keepalive, err = parseKeepalive(v)
	case "gid":
		p.pathed = true
		p.gid, err = parseGID(v)
	default:
		return false, nil
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
	if s == "auto" {
		return tailAuto, nil
	}
	on, err := parseSwitch(s)
	if on {
		return tailOn, err
	}
	return tailOff, err
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

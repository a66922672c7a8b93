package iwarp

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// settings are the settings of a device, from Config.Params and OpenConfig.Params.
type settings struct {
	crc, markers, big, extensions, fallback, peer2peer bool

	fpdu, revision, private, buffer int
	halfOpen, halfOpenIP            int // 0: from the backlog; see startupsOf

	congestion string // empty: see steer
	trace      string // the directory for traces; empty for none
	variable   bool   // it is that of the variable

	mpa, reply, grace, nudge, keepalive, stall, linger time.Duration
}

func defaultSettings() settings {
	return settings{
		crc: true, big: true, extensions: true, fallback: true,
		revision: wire.MPARevision2, private: wire.MaxPrivateSiw,
		mpa: 5 * time.Second, reply: time.Minute, grace: 50 * time.Millisecond, nudge: 50 * time.Millisecond, keepalive: 30 * time.Second,
		stall: 30 * time.Second, linger: time.Second,
	}
}

// startupsOf returns how many start-ups a listener with that backlog may have, in all
// and per address. What no parameter sets follows from the backlog, so that all peers of
// a large server may connect at the same time, from one host too.
func (s *settings) startupsOf(backlog int) (most, mostIP int) {
	most, mostIP = s.halfOpen, s.halfOpenIP
	if most == 0 {
		most = min(max(leastHalfOpen, 4*backlog), mostHalfOpen)
	}
	if mostIP == 0 {
		mostIP = min(max(leastHalfOpenIP, backlog), mostHalfOpen)
	}
	return most, mostIP
}

const (
	leastHalfOpen   = 1024
	leastHalfOpenIP = 256
	mostHalfOpen    = 1 << 20
)

// parameter is a setting by name.
type parameter struct {
	set func(value string) error
	may string // the values that it may have; empty if the error of set says that
}

// parameters are those of Config.Params.
func (s *settings) parameters() map[string]parameter {
	return map[string]parameter{
		"crc": boolean(&s.crc), "markers": boolean(&s.markers), "big": boolean(&s.big),
		"extensions": boolean(&s.extensions), "fallback": boolean(&s.fallback), "peer2peer": boolean(&s.peer2peer),

		"fpdu":     number(&s.fpdu, wire.FPDUSize(wire.MinMULPDU), wire.FPDUSize(wire.MaxULPDU)).orZero(),
		"revision": number(&s.revision, wire.MPARevision1, wire.MPARevision2),
		"private":  number(&s.private, 0, wire.MaxPrivateEnhanced), "buffer": number(&s.buffer, 0, 1<<30),
		"halfopen": number(&s.halfOpen, 1, mostHalfOpen), "halfopenip": number(&s.halfOpenIP, 1, mostHalfOpen),

		"reply": limit(&s.reply, 1).orZero(), "nudge": limit(&s.nudge, 1).orZero(), "keepalive": limit(&s.keepalive, leastKeepalive).orZero(),
		"mpa": limit(&s.mpa, 1), "grace": limit(&s.grace, 1), "stall": limit(&s.stall, 1), "linger": limit(&s.linger, 1),

		"congestion": {set: func(value string) error {
			s.congestion = value
			return mayHave(value)
		}},
		"trace": {set: func(value string) error {
			s.trace = value
			return nil
		}},
	}
}

// leastKeepalive is a time of which there is a quarter for each look.
const leastKeepalive = time.Millisecond

// apply sets one parameter.
func (s *settings) apply(key, value string) error {
	p, known := s.parameters()[key]
	if !known {
		return hw.Errorf("iwarp.Open", hw.InvalidParameter, hw.Arg1, "there is no parameter %q; those of iwarp are in: go doc godat/hw/iwarp Config", key)
	}
	err := p.set(value)
	if err != nil && p.may != "" {
		err = errors.New("it may be " + p.may)
	}
	return badValue("parameter "+key, value, err)
}

// badValue is the error of a value of what the program or its user sets.
func badValue(what, value string, err error) error {
	if err == nil {
		return nil
	}
	return hw.Errorf("iwarp.Open", hw.InvalidParameter, hw.Arg1, "%s=%q: %w", what, value, err)
}

func boolean(to *bool) parameter {
	return parameter{func(value string) (err error) {
		*to, err = strconv.ParseBool(value)
		return err
	}, "true or false"}
}

func number(to *int, low, high int) parameter {
	return parameter{func(value string) error {
		n, err := strconv.Atoi(value)
		if err == nil && (n < low || n > high) {
			err = outOfRange(n == 0)
		}
		*to = n
		return err
	}, fmt.Sprintf("%d to %d", low, high)}
}

// limit is a time of least or more.
func limit(to *time.Duration, least time.Duration) parameter {
	may := "a time of " + least.String() + " or more, such as 30s"
	if least == 1 {
		may = "a time longer than 0, such as 30s"
	}
	return parameter{func(value string) error {
		d, err := time.ParseDuration(value)
		if err == nil && d < least {
			err = outOfRange(d == 0)
		}
		*to = d
		return err
	}, may}
}

// orZero lets a number or a time be 0, too.
func (p parameter) orZero() parameter {
	return parameter{func(value string) error {
		if err := p.set(value); err != errZero {
			return err
		}
		return nil
	}, "0, or " + p.may}
}

// errZero is the error of a 0 that is out of range.
var errZero = errors.New("out of range: 0")

func outOfRange(zero bool) error {
	if zero {
		return errZero
	}
	return strconv.ErrRange
}

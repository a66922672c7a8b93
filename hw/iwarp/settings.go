package iwarp

import (
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

// apply sets one parameter.
func (s *settings) apply(key, value string) error {
	flags := map[string]*bool{
		"crc": &s.crc, "markers": &s.markers, "big": &s.big, "extensions": &s.extensions, "fallback": &s.fallback, "peer2peer": &s.peer2peer,
	}
	times := map[string]*time.Duration{"reply": &s.reply, "nudge": &s.nudge, "keepalive": &s.keepalive}
	limits := map[string]*time.Duration{"mpa": &s.mpa, "grace": &s.grace, "stall": &s.stall, "linger": &s.linger}
	numbers := map[string]struct {
		to        *int
		low, high int
	}{
		"fpdu": {&s.fpdu, 0, wire.FPDUSize(wire.MaxULPDU)}, "revision": {&s.revision, wire.MPARevision1, wire.MPARevision2},
		"private": {&s.private, 0, wire.MaxPrivateEnhanced}, "buffer": {&s.buffer, 0, 1 << 30},
		"halfopen": {&s.halfOpen, 1, mostHalfOpen}, "halfopenip": {&s.halfOpenIP, 1, mostHalfOpen},
	}
	var err error
	if flag := flags[key]; flag != nil {
		*flag, err = strconv.ParseBool(value)
	} else if t := times[key]; t != nil {
		*t, err = time.ParseDuration(value)
	} else if limit := limits[key]; limit != nil {
		*limit, err = positive(value)
	} else if n := numbers[key]; n.to != nil {
		*n.to, err = within(value, n.low, n.high)
	} else if key == "congestion" {
		s.congestion, err = value, mayHave(value)
	} else if key == "trace" {
		s.trace = value
	} else {
		return hw.Errorf("iwarp.Open", hw.InvalidParameter, hw.Arg1, "there is no parameter %q; those of iwarp are in: go doc godat/hw/iwarp Config", key)
	}
	return badValue(key, value, err)
}

func badValue(key, value string, err error) error {
	if err == nil {
		return nil
	}
	return hw.Errorf("iwarp.Open", hw.InvalidParameter, hw.Arg1, "parameter %s=%q: %w", key, value, err)
}

func within(value string, low, high int) (int, error) {
	n, err := strconv.Atoi(value)
	if err == nil && (n < low || n > high) {
		return 0, strconv.ErrRange
	}
	return n, err
}

func positive(value string) (time.Duration, error) {
	d, err := time.ParseDuration(value)
	if err == nil && d <= 0 {
		return 0, strconv.ErrRange
	}
	return d, err
}

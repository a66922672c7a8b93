package ep

import (
	"cmp"
	"net"
	"strconv"
	"time"

	"godat/ep/internal/life"
	"godat/hw"
)

// ConnectConfig says where and how to connect.
type ConnectConfig struct {
	Addr    string        // the peer's interface adapter, as the provider names it
	Qual    uint64        // its connection qualifier: the port, up to hw.MaxQual
	Timeout time.Duration // 0 means no bound but the provider's: over iwarp, the parameter reply
	Private []byte        // shown to the peer with the request; copied
}

// Connect starts to connect to a listener. It returns at once; the outcome is an event on the
// endpoint's connection dispatcher: ESTABLISHED, PEER_REJECTED, NON_PEER_REJECTED, UNREACHABLE or
// TIMED_OUT. A program should post the receives for the peer's first messages before it connects. A
// qualifier above [hw.MaxQual] is INVALID_PARAMETER, an address with a port INVALID_ADDRESS/MALFORMED.
// It answers to dat_ep_connect.
func (e *Endpoint) Connect(cfg ConnectConfig) error { return connect("ep.Connect", e, cfg) }

func connect(op string, e *Endpoint, cfg ConnectConfig) error {
	if err := alive(op, e); err != nil {
		return err
	}
	if cfg.Timeout < 0 {
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg4, "the time-out %v is negative", cfg.Timeout)
	}
	if err := cmp.Or(e.adapter.checkPrivate(op, cfg.Private), checkAddress(op, cfg.Addr, cfg.Qual, hw.Arg3)); err != nil {
		return err
	}
	e.ctl.Lock()
	defer e.ctl.Unlock()
	return e.ctl.do(&control{op: op, in: life.InConnect, connect: hw.ConnectConfig{
		Addr: cfg.Addr, Qual: cfg.Qual, Private: cfg.Private, Timeout: cfg.Timeout,
	}})
}

// DupConnect connects e to the peer of other, which must be CONNECTED: to the service point that
// other connected to, or, if other accepted, to the address and port that the peer came from. It
// ignores the address and qualifier of cfg.
// It answers to dat_ep_dup_connect.
func (e *Endpoint) DupConnect(other *Endpoint, cfg ConnectConfig) error {
	const op = "ep.DupConnect"
	if err := cmp.Or(alive(op, e), alive(op, other)); err != nil {
		return err
	}
	if other.adapter != e.adapter {
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "the endpoints belong to different adapters")
	}
	var s life.State
	if cfg.Addr, cfg.Qual, s = other.profile.peer(); s != life.Connected {
		return s.Refusal(op)
	}
	return connect(op, e, cfg)
}

// checkAddress refuses a qualifier that is no port, and a host that has a numeric
// port with it. arg is the qualifier's place among the call's arguments.
func checkAddress(op, host string, qual uint64, arg hw.Subtype) error {
	if qual > hw.MaxQual {
		return hw.Errorf(op, hw.InvalidParameter, arg, "connection qualifier %d is no port; the last is %d", qual, hw.MaxQual)
	}
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		return nil
	}
	if _, err = strconv.ParseUint(port, 10, 64); err == nil { // else it is a part of the name, as in "loop:other"
		return hw.Errorf(op, hw.InvalidAddress, hw.AddressMalformed, "%q: the address is %q, and the port %s goes into Qual", host, name, port)
	}
	return nil
}

// CommonConnect is Connect to an address that holds host and qualifier, as package net has it:
// "host:port". Any other form is INVALID_ADDRESS/MALFORMED.
// It answers to dat_ep_common_connect.
func (e *Endpoint) CommonConnect(address string, cfg ConnectConfig) error {
	const op = "ep.CommonConnect"
	err := alive(op, e)
	if err != nil {
		return err
	}
	if cfg.Addr, cfg.Qual, err = splitAddress(op, address); err != nil {
		return err
	}
	return connect(op, e, cfg)
}

// splitAddress splits "host:port".
func splitAddress(op, address string) (host string, qual uint64, err error) {
	host, port, err := net.SplitHostPort(address)
	if err == nil {
		qual, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return "", 0, hw.Errorf(op, hw.InvalidAddress, hw.AddressMalformed, "%q is no \"host:port\": %w", address, err)
	}
	return host, qual, nil
}

// checkPrivate refuses more private data than the device carries.
func (a *base) checkPrivate(op string, private []byte) error {
	if len(private) > a.attr.MaxPrivate {
		return hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "%d bytes of private data; this device carries %d", len(private), a.attr.MaxPrivate)
	}
	return nil
}

// Comm is a communication domain, in the numbers of the system's socket call:
// DAT_COMM. The zero value is the adapter's own; besides that there are streams
// over IPv4 and IPv6.
type Comm struct {
	Domain, Type, Protocol int
}

// check refuses a domain that no adapter has.
func (c Comm) check(op string) error {
	const inet, inet6, stream, tcp = 2, 10, 1, 6
	if c == (Comm{}) || (c.Domain == inet || c.Domain == inet6) && c.Type == stream && (c.Protocol == 0 || c.Protocol == tcp) {
		return nil
	}
	return hw.Errorf(op, hw.CommNotSupported, hw.NoSubtype, "domain %d, type %d, protocol %d", c.Domain, c.Type, c.Protocol)
}

package lane

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"godat/bench/mode"
	"godat/ep"
	"godat/hw/iwarp/wire"
	dat "godat/runtime"
)

// Ran is what has run in a lane. None of it is what was asked for: loops have counted what
// they did, and the adapter what it moved.
type Ran struct {
	Loop string `json:"loop"` // the mode whose loop took the messages, or the anchor's name
	// Far is the loop at the other end of round trips, as its answers say.
	Far      string      `json:"far,omitempty"`
	Spins    bool        `json:"spins,omitempty"` // the loop keeps a processor busy while nothing comes
	Did      mode.Counts `json:"did,omitzero"`    // what the loop did
	Messages int64       `json:"messages"`        // that were taken
	Size     int         `json:"size"`            // bytes of each message; 0 of a lane that carries none
	Conns    int         `json:"conns"`           // connections that carried messages
	Provider string      `json:"provider,omitempty"`
	Params   Params      `json:"params,omitempty"` // that the adapter heeds
	CRC      *bool       `json:"crc,omitempty"`    // whether the ends agreed on CRCs, where the adapter tells
}

// Params are parameters of an adapter.
type Params map[string]string

// Teller is a lane that tells what has run in it.
type Teller interface {
	// Ran is called once, before Close, when all messages have been taken. It may send
	// one message more, which it does not count.
	Ran() (Ran, error)
}

// ranOn is what the adapter says of the messages that ends have taken, or if requests is set
// of what they have asked for.
func ranOn(ia *dat.IA, cfg Config, requests bool, ends ...*ep.Endpoint) (r Ran, err error) {
	s, err := ia.Snapshot()
	if err != nil {
		return r, err
	}
	r.Provider = s.Adapter
	if r.Params, err = cfg.heeded(); err != nil {
		return r, err
	}
	var octets uint64
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		if !slices.Contains(ends, e.Endpoint) {
			continue
		}
		n, bytes := moved(e, requests)
		octets += bytes
		if n > 0 {
			r.Conns++
			r.Messages += int64(n)
		}
	}
	if r.Messages == 0 {
		return r, errors.New("its endpoints have moved no message")
	}
	if octets%uint64(r.Messages) != 0 {
		return r, fmt.Errorf("%d messages had %d bytes, not each the same", r.Messages, octets)
	}
	r.Size = int(octets / uint64(r.Messages))
	return r, nil
}

// moved is how many messages an endpoint has taken, or asked for, and their bytes.
func moved(e *ep.EndpointSnapshot, requests bool) (n, octets uint64) {
	queue := &e.Receives
	if requests {
		queue = &e.Requests
	}
	for _, m := range queue.Moved {
		n, octets = n+m.Operations, octets+m.Octets
	}
	return n, octets
}

// tookBy adds which loop took the messages. Each has one event.
func (r *Ran) tookBy(c *mode.Consumer) error {
	m, err := c.Ran()
	r.Loop, r.Spins, r.Did = m.Name, m.Spins, c.Counts()
	return err
}

// unheeded is a parameter that no adapter has.
const unheeded = "of-no-adapter"

// heeded are the parameters, if the adapter minds them: with one more that there is none
// of, it can't be opened.
func (c Config) heeded() (Params, error) {
	if len(c.Params) == 0 {
		return nil, nil
	}
	more := c
	more.Params = maps.Clone(c.Params)
	more.Params[unheeded] = ""
	ia, err := more.Adapter()
	if err == nil {
		return nil, errors.Join(fmt.Errorf("%s does not heed its parameters: it was opened with one that there is none of", c.Provider), ia.Close())
	}
	if !strings.Contains(err.Error(), unheeded) {
		return nil, fmt.Errorf("whether %s heeds its parameters can't be told: %w", c.Provider, err)
	}
	return c.Params, nil
}

// mpaRequest is how a request for a connection begins: RFC 5044, section 7.1.
const mpaRequest = "MPA ID Req Frame"

// crcOn is whether a connection has CRCs, from the start of its trace; nil if its adapter
// has no traces, or another transport.
func crcOn(e *ep.Endpoint) (*bool, error) {
	var trace kept
	stop, err := e.Trace(&trace)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, nil
	}
	if err == nil {
		err = stop()
	}
	if err != nil {
		return nil, fmt.Errorf("the connection can't be traced: %w", err)
	}
	at := bytes.Index(trace.Bytes(), []byte(mpaRequest))
	if at < 0 {
		return nil, errors.New("the trace of the connection does not begin with its request")
	}
	request, _, err := wire.ParseMPARequest(trace.Bytes()[at:])
	if err != nil {
		return nil, err
	}
	return &request.CRC, nil
}

// kept is a trace in memory.
type kept struct{ bytes.Buffer }

// Close does nothing.
func (*kept) Close() error { return nil }

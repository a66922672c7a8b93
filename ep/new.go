package ep

import (
	"cmp"
	"math"

	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/internal/door"
	"godat/mem"
)

// NewEndpoint makes an endpoint in state UNCONNECTED.
// It answers to dat_ep_create, and with an SRQ to dat_ep_create_with_srq.
func (a *Adapter) NewEndpoint(cfg Config) (*Endpoint, error) {
	const op = "ep.NewEndpoint"
	if a == nil {
		return nil, &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.HandleIA}
	}
	if cfg.PZ == nil {
		return nil, &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.HandlePZ, Text: "an endpoint needs a protection zone: IA.NewPZ makes one, for ep.Config.PZ"}
	}
	if err := cmp.Or(a.ownPZ(op, cfg.PZ), cfg.checkSRQ(op, a)); err != nil {
		return nil, err
	}
	attr, err := cfg.Attr.resolve(op, a.attr)
	if err != nil {
		return nil, err
	}
	if cfg.SRQ != nil {
		attr.MaxRecvDTOs, attr.MaxRecvIOV = 0, 0
	}
	return a.make(op, cfg, attr)
}

// checkSRQ returns what is wrong with a configuration that has a shared receive queue.
func (cfg *Config) checkSRQ(op string, a *Adapter) error {
	switch q := cfg.SRQ; {
	case q == nil:
		return nil
	case q.adapter != &a.srqRegistry:
		return hw.Errorf(op, hw.InvalidHandle, hw.HandleSRQ, "the shared receive queue is another adapter's")
	case q.pz != cfg.PZ:
		return hw.Errorf(op, hw.ProtectionViolation, hw.NoSubtype, "the shared receive queue is of another zone")
	case cfg.Attr == nil:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg7, "an endpoint with a shared receive queue needs attributes")
	}
	return nil
}

// NewSRQ makes a shared receive queue for endpoints of the zone. Attributes that the device does not
// allow are INVALID_PARAMETER, a device without shared receive queues is MODEL_NOT_SUPPORTED.
// It answers to dat_srq_create.
func (a *Adapter) NewSRQ(pz *mem.PZ, receives, segments int) (*SRQ, error) {
	const op = "ep.NewSRQ"
	switch {
	case a == nil:
		return nil, &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.HandleIA}
	case pz == nil:
		return nil, &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.HandlePZ, Text: "a shared receive queue needs a protection zone"}
	}
	if err := a.ownPZ(op, pz); err != nil {
		return nil, err
	}
	dev, ok := a.cfg.Device.(hw.SharedReceiver)
	if !ok {
		return nil, hw.Errorf(op, hw.ModelNotSupported, hw.NoSubtype, "shared receive queues on %s", a.attr.Device)
	}
	depths := min(a.attr.MaxSRQDepth, maxDepth)
	mostSegments := min(a.attr.MaxSRQSegments, maxIOV)
	receives = cmp.Or(receives, min(defaultDTOs, depths))
	segments = cmp.Or(segments, min(defaultIOV, mostSegments))
	if receives < 1 || receives > depths || segments < 1 || segments > mostSegments {
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.Arg3, "%d receives of %d segments; this device allows 1 to %d of 1 to %d",
			receives, segments, depths, mostSegments)
	}
	zone := pz.Zone(door.Key{})
	if err := zone.Use(op); err != nil {
		return nil, err
	}
	q := &SRQ{adapter: &a.srqRegistry, number: srqs.Add(1), pz: pz, zone: zone, iov: segments, depth: receives, cqRoom: math.MaxInt}
	q.low.Event = event.Event{Number: event.AsyncEPBroken, Source: q, Data: event.SRQLowWatermark}
	q.grow(q.depth)
	var err error
	q.hw, err = dev.NewSRQ(hw.SRQConfig{
		Zone: zone.Device(), Depth: receives, Segments: segments, OnLow: q.reportLow,
	})
	if err != nil {
		zone.Unuse()
		return nil, wrap(op, err)
	}
	a.srqs.put(q.hw, q)
	a.counters.srqs.whole.Add(1)
	return q, nil
}

// checkPoint returns what is wrong with the arguments that all service points share.
func (a *Adapter) checkPoint(op string, d *evd.Dispatcher, backlog int) error {
	switch {
	case a == nil:
		return &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.HandleIA}
	case d == nil:
		return &hw.Error{Op: op, Type: hw.InvalidHandle, Sub: hw.HandleEVDCR, Text: "a service point needs a dispatcher"}
	case backlog < 0:
		return hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "the backlog %d is negative", backlog)
	}
	return nil
}

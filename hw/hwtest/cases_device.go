package hwtest

import (
	"os"
	"strings"

	"go.uber.org/goleak"

	"godat/hw"
)

var deviceCases = []contractCase{
	{"a provider's name has no slash and no space", func(r *rig) {
		name := r.cfg.Provider.Name()
		r.also.NotEmpty(name)
		r.also.False(strings.ContainsAny(name, "/ "), name)
	}},
	{"an unknown parameter is refused", func(r *rig) {
		dev, err := r.cfg.Provider.Open(hw.OpenConfig{
			Device: r.cfg.Devices[0], Params: map[string]string{"no such parameter": "1"},
		})
		r.also.Error(err)
		r.also.Nil(dev)
	}},
	{"a device opens without Async", func(r *rig) {
		dev, err := r.cfg.Provider.Open(hw.OpenConfig{Device: r.cfg.Devices[0], Params: r.cfg.Params})
		r.must.NoError(err)
		r.also.NoError(dev.Close())
	}},
	{"the attributes never change and make sense", attributes},
	{"a device closes with nothing on it", func(r *rig) {
		h := r.openUnpumped(0)
		r.must.NoError(h.zone.Close())
		h.zone, h.closed = nil, true
		r.also.NoError(h.dev.Close())
	}},
	{"Close fails with IA_IN_USE and does nothing while anything is open", closeInUse},
	{"no goroutine and no descriptor is left after Close", leaveNothing},
	{"a zone does not close under a queue pair", func(r *rig) {
		r.a.holdsZone(func(zone hw.Zone) func() {
			return r.a.newEnd(func(c *hw.QPConfig) { c.Zone = zone }).close
		})
	}},
	{"a zone does not close under a region", func(r *rig) {
		r.a.holdsZone(func(zone hw.Zone) func() {
			g := r.a.memIn(zone, make([]byte, 8), hw.AllPrivileges)
			return func() { r.free(g) }
		})
	}},
	{"devices are apart: closing one leaves the other", func(r *rig) {
		c := r.open(0)
		r.must.NoError(c.zone.Close())
		c.zone = nil
		c.close()
		a, b := r.pair()
		roundTrip(r, a, b)
	}},
}

// holdsZone checks that a zone does not close until what fill puts in it is gone. fill
// returns a function that takes it away.
func (h *host) holdsZone(fill func(hw.Zone) (empty func())) {
	zone, err := h.dev.NewZone()
	h.rig.must.NoError(err)
	empty := fill(zone)
	h.rig.also.ErrorIs(zone.Close(), &hw.Error{Type: hw.InvalidState, Sub: hw.StatePZInUse})
	empty()
	h.rig.also.NoError(zone.Close())
}

func attributes(r *rig) {
	for _, h := range []*host{r.a, r.b} {
		attr := h.attr
		r.also.Equal(r.cfg.Provider.Name(), attr.Provider)
		r.also.NotEmpty(attr.Device)
		r.also.NotEmpty(attr.Address)
		r.also.True(attr.Ops.Has(hw.OpSend), "sends are the least that a device can do")
		for name, n := range map[string]int{
			"MaxQPs": attr.MaxQPs, "MaxMRs": attr.MaxMRs, "MaxZones": attr.MaxZones, "MaxDepth": attr.MaxDepth,
			"MaxSendSegments": attr.MaxSendSegments, "MaxRecvSegments": attr.MaxRecvSegments,
		} {
			r.also.Positive(n, name)
		}
		r.also.Positive(attr.MaxMessage)
		r.also.Positive(attr.MaxMR)
		if attr.Ops.Has(hw.OpRead) {
			r.also.Positive(attr.MaxReadSegments)
			r.also.Positive(attr.MaxReadsIn)
			r.also.Positive(attr.MaxReadsOut)
		}
		if attr.Ops.Has(hw.OpRead) || attr.Ops.Has(hw.OpWrite) {
			r.also.Positive(attr.MaxRDMA)
		}
		if h.polled != nil {
			r.also.Positive(attr.MaxCQs)
			r.also.Positive(attr.MaxCQDepth)
		}
		_, shared := h.dev.(hw.SharedReceiver)
		r.also.Equal(shared, attr.MaxSRQs > 0, "shared receive queues: the interface and the limit agree")
		_, binds := h.dev.(hw.Binder)
		r.also.Equal(binds, attr.MaxWindows > 0, "windows: the interface and the limit agree")
		r.also.Equal(binds, attr.Ops.Has(hw.OpBind), "windows: the interface and the operation agree")
		r.also.Equal(attr, h.dev.Attr())
	}
	a, b := r.pair()
	roundTrip(r, a, b)
	r.also.Equal(r.a.attr, r.a.dev.Attr(), "after some work")
}

// roundTrip sends one message each way.
func roundTrip(r *rig, a, b *end) {
	r.message(a, b, 100, 1)
	r.message(b, a, 100, 2)
}

func closeInUse(r *rig) {
	inUse := &hw.Error{Type: hw.InvalidState, Sub: hw.StateIAInUse}
	h := r.open(0)
	r.also.ErrorIs(h.dev.Close(), inUse, "a zone is open")

	e := h.newEnd()
	r.also.ErrorIs(h.dev.Close(), inUse, "a queue pair is open")
	r.join(e, r.b.newEnd())
	r.also.ErrorIs(h.dev.Close(), inUse, "a connection is up")
	roundTrip(r, e, r.b.ends[0])
	e.over()
	e.close()
	r.must.NoError(h.zone.Close())
	h.zone = nil

	l := h.listen(hw.ListenConfig{})
	r.also.ErrorIs(h.dev.Close(), inUse, "a listener is open")
	l.close()

	if h.polled != nil {
		cq, err := h.polled.NewCQ(hw.CQConfig{Depth: 1})
		r.must.NoError(err)
		r.also.ErrorIs(h.dev.Close(), inUse, "a completion queue is open")
		r.must.NoError(cq.Close())
	}

	zone, err := h.dev.NewZone()
	r.must.NoError(err)
	g := h.memIn(zone, make([]byte, 8), hw.AllPrivileges)
	r.also.ErrorIs(h.dev.Close(), inUse, "a region is open")
	r.must.NoError(g.free())
	r.must.NoError(zone.Close())
	h.close()
}

// leaveNothing uses two devices, breaks a connection and closes everything, and then
// checks that no goroutine and no descriptor is left.
func leaveNothing(r *rig) {
	for _, h := range r.hosts { // their devices may open descriptors for consumers at any time
		h.consumers.end()
	}
	old, files := goleak.IgnoreCurrent(), openFiles()
	inner := &rig{tb: r.tb, must: r.must, also: r.also, cfg: r.cfg}
	inner.a, inner.b = inner.open(0), inner.open(1)
	a, b := inner.pair(notReady(hourLong))
	roundTrip(inner, a, b)
	c, _ := inner.pair(notReady(hourLong))
	if inner.a.attr.NotReadyWait {
		c.post(hw.SendWR{Op: hw.OpSend, Flags: hw.WRSignaled})
	}
	b.breakNow(false)
	a.awaitDown()
	inner.close()
	r.also.NoError(goleak.Find(old))
	r.also.Equal(files, openFiles(), "descriptors")
}

// openFiles is the number of descriptors that the process has open, on Linux; elsewhere
// it is 0.
func openFiles() int {
	names, _ := os.ReadDir("/proc/self/fd")
	return len(names)
}

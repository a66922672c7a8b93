package target

import (
	"time"

	"godat/examples/nvmeof/nvme"
)

// settings are the features that a host sets and gets back, and that mean nothing to this
// target. A reset of the controller takes them back.
type settings struct {
	arbitration, power, recovery, atomicity uint32
	thresholds                              [2]uint32 // of the composite temperature: over, under
}

// coldest and hottest are thresholds that no temperature reaches.
const coldest, hottest = 0, 0xffff

func defaults() settings { return settings{thresholds: [2]uint32{hottest, coldest}} }

// feature is what an admin queue does with a feature. set completes the command; without set
// the feature can't be changed.
type feature struct {
	id        nvme.Feature
	discovery bool // discovery controllers have it, too
	get       func(a *admin, c *command) (value uint32, ok bool)
	initial   func(a *admin, c *command) (value uint32, ok bool) // nil: 0
	set       func(a *admin, c *command)
}

// features are those of a controller.
var features = []feature{
	{
		id:  nvme.FeatureArbitration,
		get: func(a *admin, _ *command) (uint32, bool) { return a.settings.arbitration, true },
		set: func(a *admin, c *command) {
			a.keep(c, &a.settings.arbitration, c.sqe.CDW11&^nvme.ReservedArbitration, true)
		},
	},
	{
		id:  nvme.FeaturePower,
		get: func(a *admin, _ *command) (uint32, bool) { return a.settings.power, true },
		set: func(a *admin, c *command) {
			a.keep(c, &a.settings.power, c.sqe.CDW11&nvme.WorkloadMask, c.sqe.CDW11&nvme.PowerStateMask == 0)
		},
	},
	{
		id: nvme.FeatureTemperature,
		get: func(a *admin, c *command) (uint32, bool) {
			t := nvme.Threshold(c.sqe.CDW11)
			return a.settings.thresholds[t.Kind()&1], t.Kind() < 2 && t.Sensor() == 0
		},
		initial: func(_ *admin, c *command) (uint32, bool) {
			t := nvme.Threshold(c.sqe.CDW11)
			return defaults().thresholds[t.Kind()&1], t.Kind() < 2 && t.Sensor() == 0
		},
		set: func(a *admin, c *command) {
			t := nvme.Threshold(c.sqe.CDW11)
			a.keep(c, &a.settings.thresholds[t.Kind()&1], t.Kelvin(), t.Kind() < 2 && (t.Sensor() == 0 || t.Sensor() == nvme.AllSensors))
		},
	},
	{
		id:  nvme.FeatureErrorRecovery,
		get: func(a *admin, _ *command) (uint32, bool) { return a.settings.recovery, true },
		set: func(a *admin, c *command) {
			a.keep(c, &a.settings.recovery, c.sqe.CDW11&nvme.RecoveryTimeMask, c.sqe.CDW11&nvme.DeallocatedError == 0)
		},
	},
	{
		id:      nvme.FeatureVolatileCache, // on, and not to be switched off, if a disk has one
		get:     func(a *admin, _ *command) (uint32, bool) { return 1, a.about().VolatileCache },
		initial: func(a *admin, _ *command) (uint32, bool) { return 1, a.about().VolatileCache },
	},
	{
		id: nvme.FeatureQueues,
		get: func(a *admin, _ *command) (uint32, bool) {
			return nvme.Queues(a.q.target.controllers.granted(a.q.controller)), true
		},
		initial: func(a *admin, _ *command) (uint32, bool) { return nvme.Queues(a.q.target.cfg.Queues), true },
		set:     (*admin).grant,
	},
	{
		id:  nvme.FeatureWriteAtomicity,
		get: func(a *admin, _ *command) (uint32, bool) { return a.settings.atomicity, true },
		set: func(a *admin, c *command) { a.keep(c, &a.settings.atomicity, c.sqe.CDW11&nvme.AtomicityOff, true) },
	},
	{
		id: nvme.FeatureAsyncEvents, discovery: true,
		get: func(a *admin, _ *command) (uint32, bool) { return a.q.controller.asyncConfig, true },
		set: func(a *admin, c *command) {
			a.keep(c, &a.q.controller.asyncConfig, c.sqe.CDW11, c.sqe.CDW11&^(a.about().AsyncEvents|nvme.HealthEvents) == 0)
			a.notify()
		},
	},
	{
		id: nvme.FeatureKeepAlive, discovery: true,
		get: func(a *admin, _ *command) (uint32, bool) { return uint32(a.keepAlive / time.Millisecond), true },
		set: func(a *admin, c *command) {
			a.keepAliveEvery(time.Duration(c.sqe.CDW11) * time.Millisecond)
			c.complete(nvme.Success)
		},
	},
	{
		id:      nvme.FeatureHostID,                                        // Connect has said it
		get:     func(*admin, *command) (uint32, bool) { return 0, false }, // but for that of 128 bits
		initial: func(*admin, *command) (uint32, bool) { return 0, false },
		set:     func(_ *admin, c *command) { c.complete(nvme.CommandSequenceError | nvme.DoNotRetry) },
	},
}

// feature is the feature that a command is about, or nil.
func (a *admin) feature(c *command) *feature {
	for i := range features {
		if f := &features[i]; f.id == c.sqe.Feature() && (f.discovery || !a.q.controller.discovery) {
			return f
		}
	}
	return nil
}

// keep sets a value, if it may be what the host wants.
func (a *admin) keep(c *command, value *uint32, wanted uint32, ok bool) {
	if !ok {
		c.complete(nvme.InvalidField | nvme.DoNotRetry)
		return
	}
	*value = wanted
	c.complete(nvme.Success)
}

// grant serves the Set Features of the number of queues.
func (a *admin) grant(c *command) {
	asked, ok := nvme.QueuesOf(c.sqe.CDW11)
	if !ok {
		c.complete(nvme.InvalidField | nvme.DoNotRetry)
		return
	}
	n, ok := a.q.target.controllers.grant(a.q.controller, asked)
	if !ok {
		c.complete(nvme.CommandSequenceError | nvme.DoNotRetry)
		return
	}
	c.answer(nvme.Success, uint64(nvme.Queues(n)))
}

// setFeature serves a Set Features. Nothing is saved over a reset, and no feature is one of a
// namespace.
func (a *admin) setFeature(c *command) {
	f := a.feature(c)
	has := f != nil
	if has && f.set == nil {
		_, has = f.get(a, c)
	}
	switch {
	case !has:
		c.complete(nvme.InvalidField | nvme.DoNotRetry)
	case c.sqe.CDW10&nvme.Save != 0:
		c.complete(nvme.FeatureNotSaveable | nvme.DoNotRetry)
	case a.q.target.namespaces.at(c.sqe.NSID) != nil:
		c.complete(nvme.FeatureNotOfNamespace | nvme.DoNotRetry)
	case f.set == nil:
		c.complete(nvme.FeatureNotChangeable | nvme.DoNotRetry)
	default:
		f.set(a, c)
	}
}

// getFeature serves a Get Features. The saved value is the default one: none is saved.
func (a *admin) getFeature(c *command) {
	f := a.feature(c)
	if f != nil && f.id == nvme.FeatureHostID && c.sqe.Which() < nvme.Supported && c.sqe.CDW11&nvme.LongHostID != 0 {
		a.give(c, len(a.q.controller.hostID), func(b []byte) { copy(b, a.q.controller.hostID[:]) })
		return
	}
	value, ok := uint32(0), f != nil
	switch which := c.sqe.Which(); {
	case !ok:
	case which == nvme.CurrentValue:
		value, ok = f.get(a, c)
	case which == nvme.DefaultValue || which == nvme.SavedValue:
		if f.initial != nil {
			value, ok = f.initial(a, c)
		}
	case which != nvme.Supported:
		ok = false
	case f.set == nil:
		_, ok = f.get(a, c)
	case f.id != nvme.FeatureHostID:
		value = nvme.FeatureChangeable
	}
	if !ok {
		c.complete(nvme.InvalidField | nvme.DoNotRetry)
		return
	}
	c.answer(nvme.Success, uint64(value))
}

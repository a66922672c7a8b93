package target

import "godat/examples/nvmeof/nvme"

// propertyGet serves a Property Get.
func (a *admin) propertyGet(c *command) {
	var value uint64
	switch p := c.sqe.Property(); {
	case p == nvme.PropertyCAP && c.sqe.PropertyLen8():
		const readyTime = 15 // in 500 ms
		value = nvme.Capabilities(a.q.target.cfg.Depth, readyTime)
	case c.sqe.PropertyLen8():
		c.complete(nvme.InvalidField | nvme.DoNotRetry)
		return
	case p == nvme.PropertyVS:
		value = nvme.Version14
	case p == nvme.PropertyCC:
		value = uint64(a.q.controller.config.Load())
	case p == nvme.PropertyCSTS:
		value = uint64(a.q.controller.status.Load())
	default:
		c.complete(nvme.InvalidField | nvme.DoNotRetry)
		return
	}
	c.answer(nvme.Success, value)
}

// propertySet serves a Property Set: the host enables, resets or shuts down the
// controller.
func (a *admin) propertySet(c *command) {
	if c.sqe.Property() != nvme.PropertyCC || c.sqe.PropertyLen8() {
		c.complete(nvme.InvalidField | nvme.DoNotRetry)
		return
	}
	ctl, config := a.q.controller, c.sqe.CDW12
	before := ctl.config.Swap(config)
	status := uint32(0)
	switch {
	case config&nvme.ConfigShutdownMask != 0:
		status = nvme.StatusShutdownComplete
		a.q.target.controllers.reset(ctl)
		a.forget()
	case config&nvme.ConfigEnable != 0:
		status = nvme.StatusReady
	case before&nvme.ConfigEnable != 0:
		a.q.target.controllers.reset(ctl)
		a.settings = defaults()
		a.forget()
	}
	ctl.status.Store(status)
	c.complete(nvme.Success)
}

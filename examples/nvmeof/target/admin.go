package target

import (
	"encoding/binary"
	"time"

	"godat/examples/nvmeof/identity"
	"godat/examples/nvmeof/nvme"
	"godat/hw"
)

// admin is what an admin queue has beside a queue. The queue's goroutine owns it.
type admin struct {
	q       *queue
	notices <-chan struct{} // namespaces or ANA groups have changed; nil before Connect
	waiting []int32         // Async Event Requests that wait for an event

	keepAlive time.Duration // how long the host may be silent; 0 means for ever
	settings  settings
	ways      ways // of a discovery controller
}

// serve serves an admin command.
func (a *admin) serve(c *command) {
	switch c.sqe.Opcode {
	case nvme.AdminKeepAlive:
		a.alive()
		c.complete(nvme.Success)
	case nvme.AdminIdentify:
		a.identify(c)
	case nvme.AdminGetLogPage:
		a.logPage(c)
	case nvme.AdminSetFeatures:
		a.setFeature(c)
	case nvme.AdminGetFeatures:
		a.getFeature(c)
	case nvme.AdminAsyncEvent:
		a.asyncEvent(c)
	case nvme.AdminAbort:
		a.abort(c)
	default:
		c.complete(nvme.InvalidOpcode | nvme.DoNotRetry)
	}
}

// identify serves an Identify.
func (a *admin) identify(c *command) {
	ns, most := a.q.target.namespaces.at(c.sqe.NSID), uint32(mostNamespaces)
	if a.q.controller.discovery {
		ns, most = nil, 0
	}
	switch page := nvme.Selector(c.sqe.CDW10); {
	case page == nvme.IdentifyControllerPage:
		id := a.about()
		a.give(c, nvme.PageLen, id.Put)
	case page == nvme.IdentifyCommandSet:
		a.give(c, nvme.PageLen, func([]byte) {}) // no limits beside those of the controller
	case page == nvme.IdentifyActiveList && c.sqe.NSID < nvme.AllNamespaces-1:
		a.give(c, nvme.PageLen, func(b []byte) { a.listNamespaces(b, c.sqe.NSID) })
	case page == nvme.IdentifyNamespacePage && ns != nil:
		a.give(c, nvme.PageLen, ns.page.Put)
	case page == nvme.IdentifyNamespacePage && c.sqe.NSID != 0 && c.sqe.NSID <= most:
		a.give(c, nvme.PageLen, func([]byte) {}) // it is inactive
	case page == nvme.IdentifyDescriptors && ns != nil:
		a.give(c, nvme.PageLen, ns.page.PutNames)
	case page == nvme.IdentifyNamespacePage || page == nvme.IdentifyDescriptors || page == nvme.IdentifyActiveList:
		c.complete(nvme.InvalidNamespace | nvme.DoNotRetry)
	default:
		c.complete(nvme.InvalidField | nvme.DoNotRetry)
	}
}

// firmware is the revision of the target.
const firmware = "1"

// about is the Identify page of the controller.
func (a *admin) about() nvme.Controller {
	id := nvme.Controller{
		Serial: identity.Serial(a.q.target.cfg.Subsystem), Model: "godat NVMe over Fabrics target", Firmware: firmware, ID: a.q.controller.id, Type: nvme.ControllerIO,
		MaxTransfer: a.q.target.cfg.transferShift(), AbortLimit: abortLimit - 1, AsyncLimit: asyncLimit - 1, AsyncEvents: nvme.NamespaceNotices | nvme.ANANotices,
		ANATransition: uint8(a.q.target.cfg.ANATransition / time.Second), ANAGroups: mostGroups, KeepAliveUnit: 1, MaxCommands: uint16(a.q.target.cfg.Depth), Namespaces: mostNamespaces, Commands: nvme.HasCompare | nvme.HasDataset | nvme.HasWriteZeroes | nvme.HasSelect,
		InCapsule: inCapsule, Subsystem: a.q.target.cfg.Subsystem,
	}
	for _, ns := range *a.q.target.namespaces.list.Load() {
		id.VolatileCache = id.VolatileCache || ns != nil && ns.volatile
	}
	if a.q.controller.discovery {
		id.Type, id.Namespaces, id.Commands, id.Subsystem = nvme.ControllerDiscovery, 0, 0, nvme.DiscoverySubsystem
		id.AsyncEvents, id.VolatileCache, id.ANATransition = nvme.DiscoveryNotices, false, 0
	}
	return id
}

// listNamespaces writes the ids of the namespaces above an id.
func (a *admin) listNamespaces(b []byte, above uint32) {
	if a.q.controller.discovery {
		return
	}
	for i, ns := range *a.q.target.namespaces.list.Load() {
		if id := uint32(i + 1); ns != nil && id > above && len(b) >= 4 {
			binary.LittleEndian.PutUint32(b, id)
			b = b[4:]
		}
	}
}

// give completes a command with data, at most nvme.PageLen bytes, which fill writes.
func (a *admin) give(c *command, n int, fill func(page []byte)) {
	if status := c.describes(n); status != nvme.Success {
		c.complete(status)
		return
	}
	if !c.sqe.Data.IsKeyed() {
		c.complete(nvme.DescriptorTypeInvalid | nvme.DoNotRetry)
		return
	}
	c.inside = nvme.PageLen
	clear(c.short())
	fill(c.short())
	c.transfer(hw.OpWrite, c.behind(min(n, nvme.PageLen)), 0)
	c.complete(nvme.Success)
}

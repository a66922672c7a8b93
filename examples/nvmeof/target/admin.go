package target

import (
	"encoding/binary"
	"net"
	"time"

	"godat/examples/nvmeof/identity"
	"godat/examples/nvmeof/nvme"
	dat "godat/runtime"
)

// admin is what an admin queue has beside a queue. The queue's goroutine owns it.
type admin struct {
	q       *queue
	notices <-chan struct{} // namespaces have changed; nil before Connect
	waiting []int32         // Async Event Requests that wait for an event

	keepAlive time.Duration // how long the host may be silent; 0 means for ever
}

// serve serves an admin command.
func (a *admin) serve(c *command) {
	switch c.Opcode {
	case nvme.AdminKeepAlive:
		a.alive()
		a.q.complete(c, nvme.Success)
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
		a.q.complete(c, nvme.InvalidOpcode|nvme.DoNotRetry)
	}
}

// identify serves an Identify.
func (a *admin) identify(c *command) {
	ns := a.q.target.namespaces.at(c.NSID)
	if a.q.controller.discovery {
		ns = nil
	}
	switch page := nvme.Selector(c.CDW10); {
	case page == nvme.IdentifyControllerPage:
		id := a.about()
		a.give(c, nvme.PageLen, id.Put)
	case page == nvme.IdentifyCommandSet:
		a.give(c, nvme.PageLen, func([]byte) {}) // no limits beside those of the controller
	case page == nvme.IdentifyActiveList:
		a.give(c, nvme.PageLen, func(b []byte) { a.listNamespaces(b, c.NSID) })
	case page == nvme.IdentifyNamespacePage && ns != nil:
		a.give(c, nvme.PageLen, ns.page.Put)
	case page == nvme.IdentifyDescriptors && ns != nil:
		a.give(c, nvme.PageLen, ns.page.PutNames)
	case page == nvme.IdentifyNamespacePage || page == nvme.IdentifyDescriptors:
		a.q.complete(c, nvme.InvalidNamespace|nvme.DoNotRetry)
	default:
		a.q.complete(c, nvme.InvalidField|nvme.DoNotRetry)
	}
}

// about is the Identify page of the controller.
func (a *admin) about() nvme.Controller {
	id := nvme.Controller{
		Serial: identity.Serial(a.q.target.cfg.Subsystem), Model: "godat NVMe over Fabrics target", Firmware: "1", ID: a.q.controller.id, Type: nvme.ControllerIO,
		MaxTransfer: transferPages, AbortLimit: abortLimit - 1, AsyncLimit: asyncLimit - 1, AsyncEvents: nvme.NamespaceNotices,
		KeepAliveUnit: 1, MaxCommands: uint16(a.q.target.cfg.Depth), Namespaces: mostNamespaces, Commands: nvme.HasCompare | nvme.HasDataset | nvme.HasWriteZeroes,
		InCapsule: inCapsule, Subsystem: a.q.target.cfg.Subsystem,
	}
	for _, ns := range *a.q.target.namespaces.list.Load() {
		id.VolatileCache = id.VolatileCache || ns != nil && ns.volatile
	}
	if a.q.controller.discovery {
		id.Type, id.Namespaces, id.Commands, id.Subsystem = nvme.ControllerDiscovery, 0, 0, nvme.DiscoverySubsystem
		id.AsyncEvents = 0
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

// setFeature serves a Set Features.
func (a *admin) setFeature(c *command) {
	switch c.Feature() {
	case nvme.FeatureQueues:
		n, ok := a.q.target.controllers.grant(a.q.controller, nvme.QueuesOf(c.CDW11))
		if !ok {
			a.q.complete(c, nvme.CommandSequenceError|nvme.DoNotRetry)
			return
		}
		a.q.answer(c, nvme.Success, uint64(nvme.Queues(n)))
	case nvme.FeatureKeepAlive:
		a.keepAliveEvery(time.Duration(c.CDW11) * time.Millisecond)
		a.q.complete(c, nvme.Success)
	case nvme.FeatureAsyncEvents:
		a.q.controller.asyncConfig = c.CDW11
		a.q.complete(c, nvme.Success)
		a.notify()
	case nvme.FeatureVolatileCache, nvme.FeatureHostID:
		a.q.complete(c, nvme.FeatureNotChangeable|nvme.DoNotRetry)
	default:
		a.q.complete(c, nvme.InvalidField|nvme.DoNotRetry)
	}
}

// getFeature serves a Get Features.
func (a *admin) getFeature(c *command) {
	var value uint32
	switch c.Feature() {
	case nvme.FeatureQueues:
		value = nvme.Queues(a.q.target.cfg.Queues)
	case nvme.FeatureKeepAlive:
		value = uint32(a.keepAlive / time.Millisecond)
	case nvme.FeatureAsyncEvents:
		value = a.q.controller.asyncConfig
	case nvme.FeatureVolatileCache:
		if id := a.about(); id.VolatileCache {
			value = 1
		}
	default:
		a.q.complete(c, nvme.InvalidField|nvme.DoNotRetry)
		return
	}
	a.q.answer(c, nvme.Success, uint64(value))
}

// logPage serves a Get Log Page. Every page of this target fits into nvme.PageLen bytes;
// bytes behind it are undefined, as the specification has it.
func (a *admin) logPage(c *command) {
	offset, length := c.LogRange()
	var page []byte
	switch p := c.LogPage(); {
	case p == nvme.LogDiscovery && a.q.controller.discovery:
		page = nvme.AppendDiscovery(nil, 1, a.ways())
	case a.q.controller.discovery:
	case p == nvme.LogChangedNamespaces:
		page = a.changedNamespaces(c)
	case p == nvme.LogErrors, p == nvme.LogHealth, p == nvme.LogFirmware:
		page = make([]byte, nvme.PageLen) // nothing to tell
	}
	switch {
	case page == nil:
		a.q.complete(c, nvme.InvalidLogPage|nvme.DoNotRetry)
	case offset > uint64(len(page)) || offset%4 != 0 || length > maxTransfer:
		a.q.complete(c, nvme.InvalidField|nvme.DoNotRetry)
	default:
		a.give(c, int(length), func(b []byte) { copy(b, page[offset:]) })
	}
}

// ways are the ways to the subsystem: the one that the host has taken to the discovery.
func (a *admin) ways() []nvme.DiscoveryEntry {
	host, port, err := net.SplitHostPort(a.q.local)
	if err != nil {
		host, port = a.q.local, ""
	}
	_, listens, _ := net.SplitHostPort(a.q.target.Addr())
	if port == "" || port == "0" {
		port = listens
	}
	ip := net.ParseIP(host)
	return []nvme.DiscoveryEntry{{
		IPv6: ip != nil && ip.To4() == nil, Subsystem: a.q.target.cfg.Subsystem, Address: host, Service: port,
		Port: 1, AdminSize: adminEntries,
	}}
}

// give completes a command with data, at most nvme.PageLen bytes, which fill writes.
func (a *admin) give(c *command, n int, fill func(page []byte)) {
	if status := c.describes(n); status != nvme.Success {
		a.q.complete(c, status)
		return
	}
	if !c.Data.IsKeyed() {
		a.q.complete(c, nvme.DescriptorTypeInvalid|nvme.DoNotRetry)
		return
	}
	c.inside = nvme.PageLen
	clear(c.short())
	fill(c.short())
	a.q.transfer(dat.OpWrite, c, c.behind(min(n, nvme.PageLen)), 0)
	a.q.complete(c, nvme.Success)
}

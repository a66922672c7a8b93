package target

import (
	"encoding/binary"
	"net"
	"time"

	"godat/examples/nvmeof/nvme"
)

// admin serves an admin command.
func (q *queue) admin(c *command) {
	switch c.Opcode {
	case nvme.AdminKeepAlive:
		q.alive()
		q.complete(c, nvme.Success)
	case nvme.AdminIdentify:
		q.identify(c)
	case nvme.AdminGetLogPage:
		q.logPage(c)
	case nvme.AdminSetFeatures:
		q.setFeature(c)
	case nvme.AdminGetFeatures:
		q.getFeature(c)
	case nvme.AdminAsyncEvent:
		if len(q.async) == asyncLimit {
			q.complete(c, nvme.AsyncEventLimitExceeded|nvme.DoNotRetry)
		} else {
			q.async = append(q.async, int32(c.capsule.Index()))
		}
	case nvme.AdminAbort:
		const notAborted = 1
		q.answer(c, nvme.Success, notAborted)
	default:
		q.complete(c, nvme.InvalidOpcode|nvme.DoNotRetry)
	}
}

// identify serves an Identify.
func (q *queue) identify(c *command) {
	ns := q.target.namespace(c.NSID)
	if q.controller.discovery {
		ns = nil
	}
	switch page := nvme.Selector(c.CDW10); {
	case page == nvme.IdentifyControllerPage:
		id := q.about()
		q.give(c, nvme.PageLen, id.Put)
	case page == nvme.IdentifyCommandSet:
		q.give(c, nvme.PageLen, func([]byte) {}) // no limits beside those of the controller
	case page == nvme.IdentifyActiveList:
		q.give(c, nvme.PageLen, func(b []byte) { q.listNamespaces(b, c.NSID) })
	case page == nvme.IdentifyNamespacePage && ns != nil:
		q.give(c, nvme.PageLen, ns.page.Put)
	case page == nvme.IdentifyDescriptors && ns != nil:
		q.give(c, nvme.PageLen, ns.page.PutNames)
	case page == nvme.IdentifyNamespacePage || page == nvme.IdentifyDescriptors:
		q.complete(c, nvme.InvalidNamespace|nvme.DoNotRetry)
	default:
		q.complete(c, nvme.InvalidField|nvme.DoNotRetry)
	}
}

// about is the Identify page of the controller.
func (q *queue) about() nvme.Controller {
	id := nvme.Controller{
		Serial: "godat", Model: "godat NVMe over Fabrics target", Firmware: "1", ID: q.controller.id, Type: nvme.ControllerIO,
		MaxTransfer: transferPages, AsyncLimit: asyncLimit - 1, KeepAliveUnit: 1, MaxCommands: uint16(q.target.cfg.Depth),
		Namespaces: uint32(len(q.target.namespaces)), Commands: nvme.HasCompare | nvme.HasDataset | nvme.HasWriteZeroes,
		InCapsule: inCapsule, Subsystem: q.target.cfg.Subsystem,
	}
	for _, ns := range q.target.namespaces {
		id.VolatileCache = id.VolatileCache || ns.volatile
	}
	if q.controller.discovery {
		id.Type, id.Namespaces, id.Commands, id.Subsystem = nvme.ControllerDiscovery, 0, 0, nvme.DiscoverySubsystem
	}
	return id
}

// listNamespaces writes the ids of the namespaces above an id.
func (q *queue) listNamespaces(b []byte, above uint32) {
	if q.controller.discovery {
		return
	}
	for id := uint64(above) + 1; id <= uint64(len(q.target.namespaces)) && len(b) >= 4; id++ {
		binary.LittleEndian.PutUint32(b, uint32(id))
		b = b[4:]
	}
}

// setFeature serves a Set Features.
func (q *queue) setFeature(c *command) {
	switch c.Feature() {
	case nvme.FeatureQueues:
		n, ok := q.target.controllers.grant(q.controller, nvme.QueuesOf(c.CDW11))
		if !ok {
			q.complete(c, nvme.CommandSequenceError|nvme.DoNotRetry)
			return
		}
		q.answer(c, nvme.Success, uint64(nvme.Queues(n)))
	case nvme.FeatureKeepAlive:
		q.keepAliveEvery(time.Duration(c.CDW11) * time.Millisecond)
		q.complete(c, nvme.Success)
	case nvme.FeatureAsyncEvents:
		q.controller.asyncConfig = c.CDW11
		q.complete(c, nvme.Success)
	case nvme.FeatureVolatileCache, nvme.FeatureHostID:
		q.complete(c, nvme.FeatureNotChangeable|nvme.DoNotRetry)
	default:
		q.complete(c, nvme.InvalidField|nvme.DoNotRetry)
	}
}

// getFeature serves a Get Features.
func (q *queue) getFeature(c *command) {
	var value uint32
	switch c.Feature() {
	case nvme.FeatureQueues:
		value = nvme.Queues(q.target.cfg.Queues)
	case nvme.FeatureKeepAlive:
		value = uint32(q.keepAlive / time.Millisecond)
	case nvme.FeatureAsyncEvents:
		value = q.controller.asyncConfig
	case nvme.FeatureVolatileCache:
		if id := q.about(); id.VolatileCache {
			value = 1
		}
	default:
		q.complete(c, nvme.InvalidField|nvme.DoNotRetry)
		return
	}
	q.answer(c, nvme.Success, uint64(value))
}

// logPage serves a Get Log Page. Every page of this target fits into nvme.PageLen bytes;
// bytes behind it are undefined, as the specification has it.
func (q *queue) logPage(c *command) {
	offset, length := c.LogRange()
	var page []byte
	switch p := c.LogPage(); {
	case p == nvme.LogDiscovery && q.controller.discovery:
		page = nvme.AppendDiscovery(nil, 1, q.ways())
	case q.controller.discovery:
	case p == nvme.LogErrors, p == nvme.LogHealth, p == nvme.LogFirmware, p == nvme.LogChangedNamespaces:
		page = make([]byte, nvme.PageLen) // nothing to tell
	}
	switch {
	case page == nil:
		q.complete(c, nvme.InvalidLogPage|nvme.DoNotRetry)
	case offset > uint64(len(page)) || offset%4 != 0 || length > maxTransfer:
		q.complete(c, nvme.InvalidField|nvme.DoNotRetry)
	default:
		q.give(c, int(length), func(b []byte) { copy(b, page[offset:]) })
	}
}

// ways are the ways to the subsystem: the one that the host has taken to the discovery.
func (q *queue) ways() []nvme.DiscoveryEntry {
	host, port, err := net.SplitHostPort(q.local)
	if err != nil {
		host, port = q.local, ""
	}
	_, listens, _ := net.SplitHostPort(q.target.Addr())
	if port == "" || port == "0" {
		port = listens
	}
	ip := net.ParseIP(host)
	return []nvme.DiscoveryEntry{{
		IPv6: ip != nil && ip.To4() == nil, Subsystem: q.target.cfg.Subsystem, Address: host, Service: port,
		Port: 1, AdminSize: adminEntries,
	}}
}

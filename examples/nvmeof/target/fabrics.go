package target

import (
	"time"

	"godat/examples/nvmeof/nvme"
)

// Offsets in a Connect command, by which Connect Invalid Parameters names a field.
const (
	queueIDOffset   = 42
	queueSizeOffset = 44
)

// fabrics serves a fabrics command.
func (q *queue) fabrics(c *command) {
	kind := c.sqe.FabricsType()
	switch {
	case kind == nvme.FabricsConnect && q.controller == nil:
		q.connect(c)
	case q.controller == nil || kind == nvme.FabricsConnect:
		c.complete(nvme.CommandSequenceError | nvme.DoNotRetry)
	case kind == nvme.FabricsPropertyGet && q.asked.QueueID == 0:
		q.admin.propertyGet(c)
	case kind == nvme.FabricsPropertySet && q.asked.QueueID == 0:
		q.admin.propertySet(c)
	default:
		c.complete(nvme.InvalidOpcode | nvme.DoNotRetry)
	}
}

// connect begins a Connect: it gets the command's data.
func (q *queue) connect(c *command) {
	switch status := c.describes(nvme.ConnectDataLen); {
	case status != nvme.Success:
		c.complete(status)
	case c.sqe.Data.IsKeyed():
		c.fetch(0, nvme.ConnectDataLen, (*command).connected)
	default:
		q.connectTo(c, c.inline())
	}
}

// connected goes on with a Connect whose data is in its slot.
func (c *command) connected(_ error) { c.q.connectTo(c, c.short()) }

// alone goes on with the Connect of an admin queue, before which the host's former queues have answered or gone.
func (c *command) alone(err error) {
	if err != nil {
		c.fail(err)
		return
	}
	told := c.short()
	if !c.sqe.Data.IsKeyed() {
		told = c.inline()
	}
	c.at = 1
	c.q.connectTo(c, told)
}

// connectTo connects the queue to a controller. For an admin queue it makes one.
func (q *queue) connectTo(c *command, told []byte) {
	asked := c.sqe.Connect()
	d, err := nvme.ParseConnectData(told)
	if err != nil || q.controller != nil { // a second Connect, while the data of the first came
		c.complete(nvme.CommandSequenceError | nvme.DoNotRetry)
		return
	}
	status, result := q.mayConnect(asked, &d)
	if status == nvme.Success && q.asked.QueueID == 0 && c.at == 0 && d.Subsystem != nvme.DiscoverySubsystem {
		if others := q.target.controllers.formerOf(&d); len(others) != 0 {
			c.next = (*command).alone
			f := former{target: q.target, queues: others, connect: c}
			q.target.queues.Go(f.run)
			return
		}
	}
	if status == nvme.Success && q.asked.QueueID == 0 {
		if q.controller = q.target.controllers.add(&d, q.address); q.controller == nil {
			status = nvme.ConnectControllerBusy
		} else {
			q.gone = nil
		}
	} else if status == nvme.Success {
		var gone <-chan struct{}
		if q.controller, gone, status, result = q.target.controllers.join(&d, q.asked.QueueID); q.controller != nil {
			q.gone = gone
		}
	}
	log := q.target.log.With("host", q.conn, "name", d.Host, "queue", q.asked.QueueID)
	if q.controller == nil {
		log.Warn("connect refused", "subsystem", d.Subsystem, "status", status)
		c.answer(status, result)
		return
	}
	if !q.target.strangers.leave(q) { // its place has gone to another just now
		q.breakOff(errGaveWay)
	}
	q.target.controllers.runs(q)
	log.Info("queue connected", "controller", q.controller.id, "entries", int(asked.QueueSize)+1)
	q.stats.about = QueueStats{Address: q.conn.String(), Host: d.Host, Controller: q.controller.id, Queue: q.asked.QueueID}
	q.target.statistics.begin(&q.stats)
	q.limit.timer.Stop()
	if q.asked.QueueID == 0 {
		q.admin.notices = q.controller.notices
		q.admin.keepAliveEvery(keepAliveOf(asked.KeepAlive, q.controller.discovery))
	}
	c.answer(nvme.Success, uint64(q.controller.id))
}

// discoveryTime is the Keep Alive time of a discovery controller whose host asks for none.
const discoveryTime = 2 * time.Minute

// keepAliveOf is the Keep Alive time for what a host asks for, in ms.
func keepAliveOf(asked uint32, discovery bool) time.Duration {
	if asked == 0 && discovery {
		return discoveryTime
	}
	return time.Duration(asked) * time.Millisecond
}

// mayConnect checks a Connect command, as far as it concerns no controller.
func (q *queue) mayConnect(asked nvme.Connect, d *nvme.ConnectData) (status nvme.Status, result uint64) {
	invalid := nvme.ConnectInvalidParameters | nvme.DoNotRetry
	switch {
	case asked.RecordFormat != 0:
		return nvme.ConnectIncompatibleFormat | nvme.DoNotRetry, 0
	case asked.QueueID != q.asked.QueueID:
		return invalid, nvme.InvalidCommand(queueIDOffset)
	case asked.QueueSize != q.asked.SendSize:
		return invalid, nvme.InvalidCommand(queueSizeOffset)
	case d.Subsystem != q.target.cfg.Subsystem && d.Subsystem != nvme.DiscoverySubsystem:
		return invalid, nvme.InvalidData(nvme.ConnectOffsetSubsystem)
	case d.Subsystem == nvme.DiscoverySubsystem && q.asked.QueueID != 0:
		return invalid, nvme.InvalidCommand(queueIDOffset)
	case q.asked.QueueID == 0 && d.Controller != nvme.DynamicController:
		return invalid, nvme.InvalidData(nvme.ConnectOffsetController)
	case nvme.CheckName(d.Host) != nil:
		return invalid, nvme.InvalidData(nvme.ConnectOffsetHost)
	case !q.target.allows(d.Host):
		return nvme.ConnectInvalidHost | nvme.DoNotRetry, 0
	}
	return nvme.Success, 0
}

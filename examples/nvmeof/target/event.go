package target

import (
	"encoding/binary"
	"math/bits"

	"godat/examples/nvmeof/nvme"
)

// changes is a set of namespace ids.
type changes [mostNamespaces / 64]uint64

func (s *changes) add(nsid uint32) { s[(nsid-1)/64] |= 1 << ((nsid - 1) % 64) }

// put writes the ids, in order, into the log page of changed namespaces.
func (s *changes) put(page []byte) {
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			binary.LittleEndian.PutUint32(page, uint32(i*64+bits.TrailingZeros64(word)+1))
			page = page[4:]
		}
	}
}

// changed notes for all controllers that a namespace has changed.
func (r *registry) changed(nsid uint32) { r.tell(func(c *controller) { c.changes.add(nsid) }) }

// groupsChanged notes for all controllers that ANA groups have changed.
func (r *registry) groupsChanged() { r.tell(func(c *controller) { c.groups = true }) }

// waysChanged notes for all discovery controllers that their log has changed.
func (r *registry) waysChanged() { r.tellThe(true, func(c *controller) { c.ways = true }) }

// tell notes something for all controllers but those of discovery.
func (r *registry) tell(note func(*controller)) { r.tellThe(false, note) }

// tellThe notes something for the discovery controllers, or for all others, and wakes their admin
// queues.
func (r *registry) tellThe(discovery bool, note func(*controller)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.all {
		if c.discovery != discovery {
			continue
		}
		note(c)
		select {
		case c.notices <- struct{}{}:
		default: // the admin queue is going to look anyway
		}
	}
}

// changesOf returns the namespaces that changed since they were last forgotten.
func (r *registry) changesOf(c *controller, forget bool) changes {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := c.changes
	if forget {
		c.changes = changes{}
	}
	return all
}

// groupsOf reports whether ANA groups changed since that was last forgotten.
func (r *registry) groupsOf(c *controller, forget bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed := c.groups
	c.groups = changed && !forget
	return changed
}

// waysOf reports whether the discovery log changed since that was last forgotten.
func (r *registry) waysOf(c *controller, forget bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed := c.ways
	c.ways = changed && !forget
	return changed
}

// asyncEvent serves an Async Event Request: it stays open until there is an event.
func (a *admin) asyncEvent(c *command) {
	if len(a.waiting) == asyncLimit {
		c.complete(nvme.AsyncEventLimitExceeded | nvme.DoNotRetry)
		return
	}
	a.waiting = append(a.waiting, int32(c.slot))
	a.notify()
}

// notify completes an Async Event Request for namespaces that have changed, one for ANA groups, and
// one for the discovery log. A second event of a kind comes only when the host has read its log page, as the
// specification has it.
func (a *admin) notify() {
	r, c := &a.q.target.controllers, a.q.controller
	if a.tells(nvme.NamespaceNotices) && r.changesOf(c, false) != (changes{}) {
		a.event(nvme.NamespaceNotices, nvme.NamespaceChanged)
	}
	if a.tells(nvme.ANANotices) && r.groupsOf(c, false) {
		a.event(nvme.ANANotices, nvme.ANAChanged)
	}
	if a.tells(nvme.DiscoveryNotices) && r.waysOf(c, false) {
		a.event(nvme.DiscoveryNotices, nvme.DiscoveryChanged)
	}
}

// forget takes back the Async Event Requests, which a reset ends, and which events the host knows.
func (a *admin) forget() {
	for _, index := range a.waiting {
		a.q.slots.commands[index].complete(nvme.AbortRequested)
	}
	a.waiting = a.waiting[:0]
	a.q.controller.asyncConfig, a.q.controller.masked = 0, 0
}

// tells reports whether the host may get an event of a kind.
func (a *admin) tells(kind uint32) bool {
	return len(a.waiting) != 0 && a.q.controller.masked&kind == 0 && a.q.controller.asyncConfig&kind != 0
}

// event completes an Async Event Request with an event of a kind.
func (a *admin) event(kind uint32, event nvme.AsyncEvent) {
	a.q.controller.masked |= kind
	request := &a.q.slots.commands[a.waiting[0]]
	a.waiting = append(a.waiting[:0], a.waiting[1:]...)
	request.answer(nvme.Success, uint64(event))
}

// changedNamespaces is the log page of changed namespaces. Reading it forgets them,
// unless the host wants to be told again.
func (a *admin) changedNamespaces(c *command) []byte {
	forget := !c.sqe.RetainsEvent()
	page := make([]byte, nvme.PageLen)
	changes := a.q.target.controllers.changesOf(a.q.controller, forget)
	changes.put(page)
	if forget {
		a.q.controller.masked &^= nvme.NamespaceNotices
	}
	return page
}

// anaPage is the ANA log page. Reading it forgets that groups have changed, unless the host
// wants to be told again; what changes after that leads to another event.
func (a *admin) anaPage(c *command) []byte {
	if !c.sqe.RetainsEvent() {
		a.q.target.controllers.groupsOf(a.q.controller, true)
		a.q.controller.masked &^= nvme.ANANotices
	}
	return a.q.target.groups.page(&a.q.target.namespaces, c.sqe.CDW10&nvme.GroupsOnly != 0)
}

// abort serves an Abort. A command that has not begun is taken back: an Async Event
// Request, or a command that waits for the worker of a store.
func (a *admin) abort(c *command) {
	const aborted, notAborted = 0, 1
	queue, cid := c.sqe.Aborted()
	if queue == 0 {
		for i, index := range a.waiting {
			if request := &a.q.slots.commands[index]; request.sqe.CID == cid {
				a.waiting = append(a.waiting[:i], a.waiting[i+1:]...)
				request.complete(nvme.AbortRequested)
				c.answer(nvme.Success, aborted)
				return
			}
		}
	} else {
		for _, ns := range *a.q.target.namespaces.list.Load() {
			if ns != nil && ns.worker.abort(a.q.controller, queue, cid) {
				c.answer(nvme.Success, aborted)
				return
			}
		}
	}
	c.answer(nvme.Success, notAborted)
}

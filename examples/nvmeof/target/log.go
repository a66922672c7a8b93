package target

import (
	"godat/examples/nvmeof/nvme"
	"godat/hw"
)

// logPage serves a Get Log Page.
func (a *admin) logPage(c *command) {
	offset, length := c.sqe.LogRange()
	if a.q.controller.discovery && c.sqe.LogPage() == nvme.LogDiscovery && offset == 0 {
		a.ways = a.q.target.look(a.q) // the host that goes on with the page gets the same one
	}
	page, status := a.page(c)
	switch {
	case status != nvme.Success:
		c.complete(status | nvme.DoNotRetry)
	case offset > uint64(len(page)) || offset%4 != 0 || length > maxTransfer:
		c.complete(nvme.InvalidField | nvme.DoNotRetry)
	case length > nvme.PageLen:
		a.giveParts(c, page[offset:], int(length))
	default:
		a.give(c, int(length), func(b []byte) { copy(b, page[offset:]) })
	}
}

// page is the log page that a command asks for. What a host gets behind it is undefined, as the
// specification has it.
func (a *admin) page(c *command) (page []byte, status nvme.Status) {
	p := c.sqe.LogPage()
	if a.q.controller.discovery {
		if p != nvme.LogDiscovery {
			return nil, nvme.InvalidLogPage
		}
		if !c.sqe.RetainsEvent() {
			a.q.target.controllers.waysOf(a.q.controller, true)
			a.q.controller.masked &^= nvme.DiscoveryNotices
		}
		return nvme.AppendDiscovery(nil, a.ways.generation, a.ways.entries), nvme.Success
	}
	page = make([]byte, nvme.PageLen)
	switch {
	case p == nvme.LogHealth && c.sqe.NSID != 0 && c.sqe.NSID != nvme.AllNamespaces:
		return nil, nvme.InvalidField // there is one page for all namespaces
	case p == nvme.LogErrors:
		return page[:nvme.ErrorLen], nvme.Success // an entry without an error
	case p == nvme.LogHealth:
		s := a.q.target.Stats()
		h := nvme.Health{BytesRead: s.BytesRead, BytesWritten: s.BytesWritten, Reads: s.Reads, Writes: s.Writes}
		h.Put(page)
		return page[:nvme.HealthLen], nvme.Success
	case p == nvme.LogFirmware:
		nvme.PutFirmware(page, firmware)
		return page[:nvme.FirmwareLen], nvme.Success
	case p == nvme.LogChangedNamespaces:
		return a.changedNamespaces(c), nvme.Success
	case p == nvme.LogANA:
		// A host may read it in pieces, up to the length that the controller's limits make.
		const full = nvme.ANAHeaderLen + mostGroups*nvme.ANAGroupLen + mostNamespaces*4
		page := a.anaPage(c)
		return append(page, make([]byte, max(0, full-len(page)))...), nvme.Success
	case p == nvme.LogEffects:
		nvme.PutEffects(page, false, adminCommands, nvme.CommandSupported)
		nvme.PutEffects(page, true, []nvme.Opcode{nvme.IOFlush, nvme.IORead, nvme.IOCompare}, nvme.CommandSupported)
		nvme.PutEffects(page, true, []nvme.Opcode{nvme.IOWrite, nvme.IOWriteZeroes, nvme.IODataset}, nvme.CommandSupported|nvme.ChangesBlocks)
		return page, nvme.Success
	}
	return nil, nvme.InvalidLogPage
}

// adminCommands are those that serve knows.
var adminCommands = []nvme.Opcode{
	nvme.AdminGetLogPage, nvme.AdminIdentify, nvme.AdminAbort, nvme.AdminSetFeatures, nvme.AdminGetFeatures, nvme.AdminAsyncEvent, nvme.AdminKeepAlive,
}

// giveParts completes a command with n bytes, more than have room in its slot: a page, and zeros
// behind it.
func (a *admin) giveParts(c *command, page []byte, n int) {
	status := c.describes(n)
	switch {
	case status != nvme.Success:
		c.complete(status)
	case !c.sqe.Data.IsKeyed():
		c.complete(nvme.DescriptorTypeInvalid | nvme.DoNotRetry)
	default:
		c.inside, c.next = nvme.PageLen, parts(page).give
		c.next(c, nil)
	}
}

// parts is a page that goes to the host in parts. The host gets the page as it was when the
// command came, however it changes meanwhile.
type parts []byte

// give gives the next part; c.at is how much the host has. The part behind it takes its place
// when it was sent.
func (p parts) give(c *command, _ error) {
	clear(c.short())
	copy(c.short(), p[min(c.at, len(p)):])
	at, length := c.at, int(c.sqe.Data.Length)
	n := min(length-at, nvme.PageLen)
	c.at += n
	d := c.transfer(hw.OpWrite, c.behind(n), at)
	if c.at == length {
		c.complete(nvme.Success)
		return
	}
	d.Flags = hw.Default
}

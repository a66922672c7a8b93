package target

import (
	"godat/ep"
	"godat/examples/nvmeof/nvme"
	"godat/hw"
	"godat/mem"
)

// remote is the part of the host's memory that a command names, n bytes at an offset.
func (c *command) remote(at, n int) mem.RemoteSegment {
	return mem.RemoteSegment{Addr: c.sqe.Data.Address + uint64(at), Len: uint32(n), Context: c.sqe.Data.Key}
}

// describes checks that a command describes exactly n bytes of data, in its capsule or
// in the host's memory.
func (c *command) describes(n int) nvme.Status {
	if status := c.describesLeast(n); status != nvme.Success {
		return status
	}
	if c.sqe.Data.Length != uint32(n) {
		return nvme.DataLengthInvalid | nvme.DoNotRetry
	}
	return nvme.Success
}

// describesLeast is describes for a command that may describe more than it needs.
func (c *command) describesLeast(n int) nvme.Status {
	switch {
	case c.sqe.Flags != nvme.UsesList:
		return nvme.InvalidField | nvme.DoNotRetry // fused, or physical pages
	case !c.sqe.Data.IsKeyed() && c.sqe.Data.Type != nvme.InCapsule:
		return nvme.DescriptorTypeInvalid | nvme.DoNotRetry
	case c.sqe.Data.Length < uint32(n):
		return nvme.DataLengthInvalid | nvme.DoNotRetry
	case c.sqe.Data.Type == nvme.InCapsule && (c.sqe.Data.Address > uint64(c.inside) || uint64(c.sqe.Data.Length) > uint64(c.inside)-c.sqe.Data.Address):
		return nvme.OffsetInvalid | nvme.DoNotRetry
	}
	return nvme.Success
}

// inline is the data of a command that describes it in its capsule.
func (c *command) inline() []byte {
	return c.memory[data:][c.sqe.Data.Address:][:c.sqe.Data.Length]
}

// transfer queues an RDMA operation for a command, which has no event: the completion behind it tells the host.
func (c *command) transfer(op hw.Op, local mem.Segment, at int) *ep.DTO {
	d := c.q.slots.request()
	d.Op, d.Flags, d.Cookie, d.Segment, d.Remote = op, hw.Suppress, uint64(c.slot), local, c.remote(at, int(local.Len))
	return d
}

// bring queues an RDMA read for a command, whose end goes on with the command's next step.
func (c *command) bring(local mem.Segment, at int) {
	c.q.proofs.posted++
	c.transfer(hw.OpRead, local, at).Flags = hw.Default
}

// short is the memory of a slot for data, behind the command.
func (c *command) short() []byte { return c.memory[data:][:c.inside] }

// behind is the same memory for a local operation, n bytes.
func (c *command) behind(n int) mem.Segment {
	return mem.Segment{Addr: c.local.Addr + data, Len: uint32(n), Context: c.local.Context}
}

// fetch gets n bytes of data of a command into its slot, from an offset on, and then calls
// next.
func (c *command) fetch(at, n int, next step) {
	c.next, c.inside = next, n
	c.bring(c.behind(n), at)
}

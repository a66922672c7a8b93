package nvme

import (
	"encoding/binary"
	"fmt"
)

// CommandLen is the length of a command (a submission queue entry) in bytes.
const CommandLen = 64

// Opcode is the first byte of a command. Admin and I/O commands number theirs
// independently; OpFabrics is in both.
type Opcode uint8

// Admin commands.
const (
	AdminGetLogPage  Opcode = 0x02
	AdminIdentify    Opcode = 0x06
	AdminAbort       Opcode = 0x08
	AdminSetFeatures Opcode = 0x09
	AdminGetFeatures Opcode = 0x0a
	AdminAsyncEvent  Opcode = 0x0c
	AdminKeepAlive   Opcode = 0x18
)

// I/O commands of the NVM command set.
const (
	IOFlush       Opcode = 0x00
	IOWrite       Opcode = 0x01
	IORead        Opcode = 0x02
	IOCompare     Opcode = 0x05
	IOWriteZeroes Opcode = 0x08
	IODataset     Opcode = 0x09
)

// OpFabrics is the opcode of all fabrics commands, which FabricsType tells apart.
const OpFabrics Opcode = 0x7f

// FabricsType says what a fabrics command does. It has the place of the namespace.
type FabricsType uint8

// Fabrics commands.
const (
	FabricsPropertySet FabricsType = 0x00
	FabricsConnect     FabricsType = 0x01
	FabricsPropertyGet FabricsType = 0x04
)

// Bits of CDW12 of Read, Write, Compare and Write Zeroes.
const (
	ForceUnitAccess uint32 = 1 << 30 // the data is stable before the command completes
	Deallocate      uint32 = 1 << 25 // of Write Zeroes: the blocks may be given up
)

// DatasetDeallocate is the bit of CDW11 of Dataset Management that asks to deallocate.
const DatasetDeallocate uint32 = 1 << 2

// UsesList is the value of Command.Flags: the data is described by a scatter/gather
// list, as all commands over fabrics do.
const UsesList = 1 << 6

// Command is a command as it is in a capsule. CDW10 to CDW15 mean what the opcode says;
// methods give those of fabrics commands names.
type Command struct {
	Opcode Opcode
	CID    uint16 // names the command in its completion
	NSID   uint32
	Data   Descriptor

	CDW10, CDW11, CDW12, CDW13, CDW14, CDW15 uint32

	// Flags are the fused operation, and UsesList. They are not next to Opcode as in a
	// capsule: Put would load both at once, and wait for the stores of each.
	Flags uint8
}

// Parse decodes the command at the beginning of a capsule. What follows it is the
// capsule's data.
func (c *Command) Parse(b []byte) error {
	if len(b) < CommandLen {
		return fmt.Errorf("nvme: a capsule of %d bytes has no command", len(b))
	}
	le := binary.LittleEndian
	b = b[:CommandLen]
	c.Opcode, c.Flags, c.CID, c.NSID = Opcode(b[0]), b[1], le.Uint16(b[2:]), le.Uint32(b[4:])
	c.Data.parse(b[24:40])
	c.CDW10, c.CDW11, c.CDW12 = le.Uint32(b[40:]), le.Uint32(b[44:]), le.Uint32(b[48:])
	c.CDW13, c.CDW14, c.CDW15 = le.Uint32(b[52:]), le.Uint32(b[56:]), le.Uint32(b[60:])
	return nil
}

// Put encodes the command into the first CommandLen bytes of b.
func (c *Command) Put(b []byte) {
	le := binary.LittleEndian
	b = b[:CommandLen]
	clear(b[8:40])
	b[0], b[1] = byte(c.Opcode), c.Flags
	le.PutUint16(b[2:], c.CID)
	le.PutUint32(b[4:], c.NSID)
	c.Data.put(b[24:40])
	le.PutUint32(b[40:], c.CDW10)
	le.PutUint32(b[44:], c.CDW11)
	le.PutUint32(b[48:], c.CDW12)
	le.PutUint32(b[52:], c.CDW13)
	le.PutUint32(b[56:], c.CDW14)
	le.PutUint32(b[60:], c.CDW15)
}

// FabricsType is the type of a command whose opcode is OpFabrics.
func (c *Command) FabricsType() FabricsType { return FabricsType(c.NSID) }

// LBA is the first logical block of an I/O command.
func (c *Command) LBA() uint64 { return uint64(c.CDW11)<<32 | uint64(c.CDW10) }

// Blocks is how many logical blocks a Read, Write, Compare or Write Zeroes is about.
func (c *Command) Blocks() uint64 { return uint64(c.CDW12&0xffff) + 1 }

// SetRange makes an I/O command be about that many blocks, 1 to 65536, from lba on.
func (c *Command) SetRange(lba uint64, blocks uint32) {
	c.CDW10, c.CDW11 = uint32(lba), uint32(lba>>32)
	c.CDW12 = c.CDW12&^0xffff | (blocks-1)&0xffff
}

// Abort returns the command that aborts a command of a queue.
func Abort(queue, cid uint16) Command {
	return Command{Opcode: AdminAbort, Flags: UsesList, CDW10: uint32(cid)<<16 | uint32(queue)}
}

// Aborted is the command that an Abort is about.
func (c *Command) Aborted() (queue, cid uint16) { return uint16(c.CDW10), uint16(c.CDW10 >> 16) }

// Ranges is how many ranges the data of a Dataset Management command lists.
func (c *Command) Ranges() int { return int(c.CDW10&0xff) + 1 }

// RangeLen is the length of a range of Dataset Management in bytes, and MaxRanges the
// most that a command lists.
const (
	RangeLen  = 16
	MaxRanges = 256
)

// Range is a range of logical blocks that Dataset Management is about.
type Range struct {
	LBA    uint64
	Blocks uint32
}

// ParseRange decodes the first RangeLen bytes of b, which must be there.
func ParseRange(b []byte) Range {
	b = b[:RangeLen]
	return Range{Blocks: binary.LittleEndian.Uint32(b[4:]), LBA: binary.LittleEndian.Uint64(b[8:])}
}

// Append appends the range to b.
func (r Range) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, 0) // context attributes
	b = binary.LittleEndian.AppendUint32(b, r.Blocks)
	return binary.LittleEndian.AppendUint64(b, r.LBA)
}

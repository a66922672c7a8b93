package nvme

// Property is the offset of a controller's property, which would be a register of a
// controller on PCI Express.
type Property uint32

// Properties.
const (
	PropertyCAP  Property = 0x00 // capabilities, 8 bytes
	PropertyVS   Property = 0x08 // version
	PropertyCC   Property = 0x14 // configuration, which the host sets
	PropertyCSTS Property = 0x1c // status
)

// Version14 is the version that the property VS of this target has: 1.4.
const Version14 = 1<<16 | 4<<8

// Capabilities is CAP of a controller whose queues have that many entries, and which
// becomes ready within readyTime, in units of 500 ms: contiguous queues required, the
// NVM command set, pages of 4 KiB.
func Capabilities(entries int, readyTime uint8) uint64 {
	return uint64(entries-1) | 1<<16 | uint64(readyTime)<<24 | 1<<37
}

// Bits of the configuration CC.
const (
	ConfigEnable       uint32 = 1 << 0
	ConfigShutdownMask uint32 = 3 << 14
	// ConfigEntrySizes is the only pair of entry sizes on fabrics: 64 bytes for
	// commands and 16 for completions.
	ConfigEntrySizes uint32 = 6<<16 | 4<<20
)

// Bits of the status CSTS.
const (
	StatusReady            uint32 = 1 << 0
	StatusFatal            uint32 = 1 << 1
	StatusShutdownComplete uint32 = 2 << 2
)

// PropertyGet returns the command that reads a property.
func PropertyGet(p Property) Command {
	c := Command{Opcode: OpFabrics, Flags: UsesList, NSID: uint32(FabricsPropertyGet), CDW11: uint32(p)}
	if p == PropertyCAP {
		c.CDW10 = 1
	}
	return c
}

// PropertySet returns the command that writes a property of 4 bytes.
func PropertySet(p Property, value uint32) Command {
	return Command{Opcode: OpFabrics, Flags: UsesList, NSID: uint32(FabricsPropertySet), CDW11: uint32(p), CDW12: value}
}

// PropertyLen8 reports whether a property command is about 8 bytes; otherwise it is
// about 4.
func (c *Command) PropertyLen8() bool { return c.CDW10&7 == 1 }

// Property is the property that a property command is about.
func (c *Command) Property() Property { return Property(c.CDW11) }

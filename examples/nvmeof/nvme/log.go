package nvme

import (
	"encoding/binary"
	"fmt"
)

// LogPage is a log page: LID.
type LogPage uint8

// Log pages.
const (
	LogErrors            LogPage = 0x01
	LogHealth            LogPage = 0x02
	LogFirmware          LogPage = 0x03
	LogChangedNamespaces LogPage = 0x04
	LogEffects           LogPage = 0x05
	LogANA               LogPage = 0x0c
	LogDiscovery         LogPage = 0x70
)

// Health is what the health log page says: the disks have no wear, no spare blocks and no
// temperature.
type Health struct {
	BytesRead, BytesWritten uint64
	Reads, Writes           uint64 // commands
}

// temperature is the composite one, in kelvin. A target without a sensor says room temperature, as
// other controllers made of software do: 0 K is -273 °C to who watches a disk.
const temperature = 293

// Put encodes the page into the first HealthLen bytes of b.
func (h *Health) Put(b []byte) {
	const unit = 1000 * 512 // bytes
	le := binary.LittleEndian
	b = b[:HealthLen]
	clear(b)
	le.PutUint16(b[1:], temperature)
	b[3] = 100 // percent of the spare blocks are there
	for at, v := range map[int]uint64{32: h.BytesRead, 48: h.BytesWritten} {
		le.PutUint64(b[at:], (v+unit-1)/unit)
	}
	le.PutUint64(b[64:], h.Reads)
	le.PutUint64(b[80:], h.Writes)
}

// Lengths of log pages in bytes.
const (
	ErrorLen    = 64 // of the only entry
	HealthLen   = 512
	FirmwareLen = 512
)

// PutFirmware encodes the page of the firmware slots into the first FirmwareLen bytes of b: the
// only slot is active.
func PutFirmware(b []byte, revision string) {
	b = b[:FirmwareLen]
	clear(b)
	b[0] = 1
	pad(b[8:16], revision)
}

// Effects is what the log page of effects says about a command.
type Effects uint32

// Bits of Effects.
const (
	CommandSupported Effects = 1 << 0
	ChangesBlocks    Effects = 1 << 1
)

// PutEffects encodes what the log page of effects says about the commands of a list, into a
// page whose other commands are not supported.
func PutEffects(page []byte, io bool, opcodes []Opcode, effects Effects) {
	begin := 0
	if io {
		begin = 1024
	}
	for _, op := range opcodes {
		binary.LittleEndian.PutUint32(page[begin+4*int(op):], uint32(effects))
	}
}

// GetLogPage returns the command that asks for length bytes of a log page, a multiple
// of 4, from offset on.
func GetLogPage(page LogPage, offset uint64, length uint32) Command {
	dwords := length/4 - 1
	return Command{
		Opcode: AdminGetLogPage, Flags: UsesList, NSID: AllNamespaces,
		CDW10: uint32(page) | dwords<<16, CDW11: dwords >> 16, CDW12: uint32(offset), CDW13: uint32(offset >> 32),
	}
}

// AllNamespaces is the namespace id that means all of them.
const AllNamespaces = 0xffffffff

// RetainsEvent reports whether a Get Log Page command leaves the event that led to it as it
// is: the host is told of nothing new, and the page keeps its contents.
func (c *Command) RetainsEvent() bool { return c.CDW10&(1<<15) != 0 }

// LogPage is the page that a Get Log Page command asks for.
func (c *Command) LogPage() LogPage { return LogPage(c.CDW10) }

// LogRange is the part of the page that a Get Log Page command asks for, in bytes.
func (c *Command) LogRange() (offset, length uint64) {
	return uint64(c.CDW13)<<32 | uint64(c.CDW12), (uint64(c.CDW11&0xffff)<<16 | uint64(c.CDW10>>16) + 1) * 4
}

// DiscoveryEntryLen is the length of an entry of the discovery log page, and of the
// header in front of the entries.
const DiscoveryEntryLen = 1024

// DiscoveryEntry is a way to a subsystem.
type DiscoveryEntry struct {
	IPv6      bool
	Subsystem string
	Address   string
	Service   string // the port
	Port      uint16 // the number of this way
	AdminSize uint16 // entries of the admin queue at most
}

// Constants of discovery entries.
const (
	transportRDMA    = 1
	familyIPv4       = 1
	familyIPv6       = 2
	kindNVM          = 2 // a subsystem with controllers for I/O
	securityNotUsed  = 2
	connectedQueues  = 1
	providerUnnamed  = 1
	managerRDMA      = 1
	discoveryFormat0 = 0
)

// AppendDiscovery appends a discovery log page with its entries to b. The generation
// changes when the entries do.
func AppendDiscovery(b []byte, generation uint64, entries []DiscoveryEntry) []byte {
	le := binary.LittleEndian
	at := len(b)
	b = append(b, make([]byte, DiscoveryEntryLen*(1+len(entries)))...)
	header := b[at:]
	le.PutUint64(header, generation)
	le.PutUint64(header[8:], uint64(len(entries)))
	le.PutUint16(header[16:], discoveryFormat0)
	for i := range entries {
		entries[i].put(header[DiscoveryEntryLen*(1+i):])
	}
	return b
}

func (e *DiscoveryEntry) put(b []byte) {
	le := binary.LittleEndian
	b[0], b[1], b[2], b[3] = transportRDMA, familyIPv4, kindNVM, securityNotUsed
	if e.IPv6 {
		b[1] = familyIPv6
	}
	le.PutUint16(b[4:], e.Port)
	le.PutUint16(b[6:], DynamicController)
	le.PutUint16(b[8:], e.AdminSize)
	pad(b[32:64], e.Service)
	copy(b[256:256+maxName], e.Subsystem)
	pad(b[512:768], e.Address)
	b[768], b[769], b[770] = connectedQueues, providerUnnamed, managerRDMA
}

// ParseDiscoveryHeader decodes the header of a discovery log page.
func ParseDiscoveryHeader(b []byte) (generation, entries uint64, err error) {
	if len(b) < 18 {
		return 0, 0, fmt.Errorf("nvme: %d bytes of a discovery log page", len(b))
	}
	return binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), nil
}

// ParseDiscoveryEntry decodes an entry of a discovery log page. ok is false for one of
// another transport.
func ParseDiscoveryEntry(b []byte) (e DiscoveryEntry, ok bool) {
	if len(b) < DiscoveryEntryLen || b[0] != transportRDMA {
		return e, false
	}
	return DiscoveryEntry{
		IPv6: b[1] == familyIPv6, Subsystem: text(b[256:512]), Address: unpad(b[512:768]), Service: unpad(b[32:64]),
		Port: binary.LittleEndian.Uint16(b[4:]), AdminSize: binary.LittleEndian.Uint16(b[8:]),
	}, true
}

package nvme

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// PageLen is the length of the data of Identify in bytes.
const PageLen = 4096

// Selector says which page an Identify command asks for: CNS.
type Selector uint8

// Identify pages.
const (
	IdentifyNamespacePage  Selector = 0x00
	IdentifyControllerPage Selector = 0x01
	IdentifyActiveList     Selector = 0x02 // of the namespaces above NSID
	IdentifyDescriptors    Selector = 0x03 // the names of a namespace
	IdentifyCommandSet     Selector = 0x06 // what the NVM command set adds about the controller
)

// Identify returns the command that asks for a page about a namespace.
func Identify(page Selector, nsid uint32) Command {
	return Command{Opcode: AdminIdentify, Flags: UsesList, NSID: nsid, CDW10: uint32(page)}
}

// ParseNamespaceList decodes the ids of IdentifyActiveList and of LogChangedNamespaces: the
// list ends with a zero, or with the page.
func ParseNamespaceList(b []byte) (ids []uint32) {
	for ; len(b) >= 4; b = b[4:] {
		id := binary.LittleEndian.Uint32(b)
		if id == 0 {
			break
		}
		ids = append(ids, id)
	}
	return ids
}

// ControllerType says what a controller serves.
type ControllerType uint8

// Types of controllers.
const (
	ControllerIO        ControllerType = 1
	ControllerDiscovery ControllerType = 2
)

// Commands that are optional, as bits of Controller.Commands: ONCS.
const (
	HasCompare     uint16 = 1 << 0
	HasDataset     uint16 = 1 << 2
	HasWriteZeroes uint16 = 1 << 3
	HasSelect      uint16 = 1 << 4 // Get Features has the values of Which, and Set Features answers to Save
)

// Controller is what the Identify page of a controller says.
type Controller struct {
	Serial, Model, Firmware string // 20, 40 and 8 bytes of ASCII
	ID                      uint16
	Type                    ControllerType
	MaxTransfer             uint8 // a power of two of 4 KiB pages: MDTS
	AbortLimit              uint8 // 0's based
	AsyncLimit              uint8 // 0's based
	AsyncEvents             uint32
	KeepAliveUnit           uint16 // in 100 ms
	MaxCommands             uint16
	Namespaces              uint32
	Commands                uint16
	VolatileCache           bool
	ANATransition           uint8  // the most seconds of ANAChange; 0 means no ANA
	ANAGroups               uint32 // how many there may be, and the highest id of one
	InCapsule               int    // bytes of data that a capsule takes
	Subsystem               string
}

const (
	supportsLists   = 1 << 0  // SGLS: scatter/gather lists
	supportsKeyed   = 1 << 2  // keyed data blocks
	supportsOffsets = 1 << 20 // offsets into the capsule
	sharedNamespace = 1 << 0  // NMIC: more than one controller may have it
	multiPort       = 1 << 0  // CMIC: the subsystem may have more than one port
	multiController = 1 << 1  // CMIC: the subsystem may have more than one controller
	reportsANA      = 1 << 3  // CMIC
	allANAStates    = 0x1f    // ANACAP

	longHostID        = 1 << 0 // CTRATT: the host's identifier has 128 bits
	trafficKeepsAlive = 1 << 6 // CTRATT: any command counts as a Keep Alive

	oneReadOnlySlot = 1<<1 | 1<<0 // FRMW: one firmware slot, which is read only
	hasEffectsLog   = 1 << 1      // LPA
	hasLongLogs     = 1 << 2      // LPA: Get Log Page has lengths and offsets of 32 bits
	flushesAll      = 3 << 1      // VWC: a Flush may be about all namespaces
)

// Put encodes the page into the first PageLen bytes of b.
func (c *Controller) Put(b []byte) {
	le := binary.LittleEndian
	b = b[:PageLen]
	clear(b)
	pad(b[4:24], c.Serial)
	pad(b[24:64], c.Model)
	pad(b[64:72], c.Firmware)
	b[76] = multiPort | multiController
	b[77] = c.MaxTransfer
	le.PutUint16(b[78:], c.ID)
	le.PutUint32(b[80:], Version14)
	le.PutUint32(b[92:], c.AsyncEvents)
	le.PutUint32(b[96:], longHostID|trafficKeepsAlive)
	b[111] = byte(c.Type)
	b[258], b[259] = c.AbortLimit, c.AsyncLimit
	b[260] = oneReadOnlySlot
	b[261] = hasLongLogs
	if c.Type == ControllerIO {
		b[261] |= hasEffectsLog
		b[525] = flushesAll
	}
	le.PutUint16(b[320:], c.KeepAliveUnit)
	if c.ANATransition != 0 {
		b[76] |= reportsANA
		b[342], b[343] = c.ANATransition, allANAStates
		le.PutUint32(b[344:], c.ANAGroups)  // ANAGRPMAX
		le.PutUint32(b[348:], c.ANAGroups)  // NANAGRPID
		le.PutUint32(b[540:], c.Namespaces) // MNAN, which ANA demands
	}
	b[512], b[513] = 6<<4|6, 4<<4|4 // sizes of the entries of queues, powers of two
	le.PutUint16(b[514:], c.MaxCommands)
	le.PutUint32(b[516:], c.Namespaces)
	le.PutUint16(b[520:], c.Commands)
	if c.VolatileCache {
		b[525] |= 1
	}
	le.PutUint32(b[536:], supportsLists|supportsKeyed|supportsOffsets)
	copy(b[768:768+maxName], c.Subsystem)
	le.PutUint32(b[1792:], uint32(CommandLen+c.InCapsule)/16)
	le.PutUint32(b[1796:], CompletionLen/16)
	b[1803] = 1 // MSDBD: descriptors of a command
}

// ParseController decodes the Identify page of a controller.
func ParseController(b []byte) (Controller, error) {
	if len(b) != PageLen {
		return Controller{}, fmt.Errorf("nvme: an Identify page of %d bytes", len(b))
	}
	le := binary.LittleEndian
	c := Controller{
		Serial: unpad(b[4:24]), Model: unpad(b[24:64]), Firmware: unpad(b[64:72]),
		MaxTransfer: b[77], ID: le.Uint16(b[78:]), AsyncEvents: le.Uint32(b[92:]), Type: ControllerType(b[111]),
		AbortLimit: b[258], AsyncLimit: b[259], KeepAliveUnit: le.Uint16(b[320:]), MaxCommands: le.Uint16(b[514:]),
		ANATransition: b[342], ANAGroups: le.Uint32(b[348:]), Namespaces: le.Uint32(b[516:]), Commands: le.Uint16(b[520:]), VolatileCache: b[525]&1 != 0,
		Subsystem: text(b[768:1024]),
	}
	if capsule := le.Uint32(b[1792:]); capsule > CommandLen/16 && capsule < 1<<16 {
		c.InCapsule = int(capsule)*16 - CommandLen
	}
	return c, nil
}

// Namespace is what the Identify page of a namespace says. It has one format, without
// metadata, and can be shared among controllers.
type Namespace struct {
	Blocks     uint64
	BlockShift uint8 // a block has 1<<BlockShift bytes
	ANAGroup   uint32
	ID         [16]byte
}

// Put encodes the page into the first PageLen bytes of b.
func (n *Namespace) Put(b []byte) {
	le := binary.LittleEndian
	b = b[:PageLen]
	clear(b)
	for _, at := range [...]int{0, 8, 16} { // size, capacity, use
		le.PutUint64(b[at:], n.Blocks)
	}
	b[30] = sharedNamespace
	b[33] = 1 | 1<<3 // DLFEAT: deallocated blocks read as zeros, and Write Zeroes may deallocate
	le.PutUint32(b[92:], n.ANAGroup)
	copy(b[104:120], n.ID[:])
	b[130] = n.BlockShift // the first format; 0 bytes of metadata
}

// ParseNamespace decodes the Identify page of a namespace. A namespace without blocks
// is inactive.
func ParseNamespace(b []byte) (Namespace, error) {
	if len(b) != PageLen {
		return Namespace{}, fmt.Errorf("nvme: an Identify page of %d bytes", len(b))
	}
	format := 128 + 4*int(b[26]&0xf)
	n := Namespace{Blocks: binary.LittleEndian.Uint64(b), BlockShift: b[format+2], ANAGroup: binary.LittleEndian.Uint32(b[92:])}
	copy(n.ID[:], b[104:120])
	if n.Blocks != 0 && (n.BlockShift < 9 || n.BlockShift > 16) {
		return Namespace{}, fmt.Errorf("nvme: a namespace with blocks of 2^%d bytes", n.BlockShift)
	}
	return n, nil
}

// PutNames encodes the namespace's names into the first PageLen bytes of b: its id as
// NGUID and as UUID.
func (n *Namespace) PutNames(b []byte) {
	b = b[:PageLen]
	clear(b)
	for i, kind := range [...]byte{2, 3} {
		entry := b[i*20:]
		entry[0], entry[1] = kind, 16
		copy(entry[4:], n.ID[:])
	}
}

// pad copies text into a field that is filled up with spaces.
func pad(field []byte, s string) {
	for i := copy(field, s); i < len(field); i++ {
		field[i] = ' '
	}
}

func unpad(field []byte) string { return strings.TrimRight(string(field), " \x00") }

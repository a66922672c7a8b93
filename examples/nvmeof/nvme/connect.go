package nvme

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// DynamicController is the controller id by which an admin queue asks for any
// controller that is free.
const DynamicController = 0xffff

// Connect is what a Connect command says beside its data.
type Connect struct {
	RecordFormat uint16
	QueueID      uint16 // 0 is the admin queue
	QueueSize    uint16 // 0's based
	Attributes   uint8
	KeepAlive    uint32 // milliseconds; 0 means no time-out
}

// NoFlowControl is the bit of Connect.Attributes by which a host says that it ignores
// SQHead.
const NoFlowControl = 1 << 2

// Connect returns the fields of a Connect command.
func (c *Command) Connect() Connect {
	return Connect{
		RecordFormat: uint16(c.CDW10), QueueID: uint16(c.CDW10 >> 16),
		QueueSize: uint16(c.CDW11), Attributes: uint8(c.CDW11 >> 16), KeepAlive: c.CDW12,
	}
}

// Command returns the Connect command.
func (c Connect) Command() Command {
	return Command{
		Opcode: OpFabrics, Flags: UsesList, NSID: uint32(FabricsConnect),
		CDW10: uint32(c.QueueID)<<16 | uint32(c.RecordFormat),
		CDW11: uint32(c.Attributes)<<16 | uint32(c.QueueSize), CDW12: c.KeepAlive,
	}
}

// ConnectDataLen is the length of a Connect command's data in bytes.
const ConnectDataLen = 1024

// Offsets in the data of Connect, by which Connect Invalid Parameters names a field.
const (
	ConnectOffsetController = 16
	ConnectOffsetSubsystem  = 256
	ConnectOffsetHost       = 512
)

// InvalidData is the result of Connect Invalid Parameters for a field of the data, at an
// offset in bytes.
func InvalidData(offset int) uint64 { return 1<<16 | uint64(offset) }

// InvalidCommand is the result of Connect Invalid Parameters for a field of the command,
// at an offset in bytes.
func InvalidCommand(offset int) uint64 { return uint64(offset) }

// ConnectData is the data of a Connect command.
type ConnectData struct {
	HostID     [16]byte
	Controller uint16
	Subsystem  string // NVMe qualified name
	Host       string
}

// ParseConnectData decodes the data of a Connect command.
func ParseConnectData(b []byte) (ConnectData, error) {
	if len(b) != ConnectDataLen {
		return ConnectData{}, fmt.Errorf("nvme: %d bytes of data of Connect", len(b))
	}
	d := ConnectData{Controller: binary.LittleEndian.Uint16(b[ConnectOffsetController:])}
	copy(d.HostID[:], b)
	d.Subsystem = text(b[ConnectOffsetSubsystem:ConnectOffsetHost])
	d.Host = text(b[ConnectOffsetHost : ConnectOffsetHost+nameLen])
	return d, nil
}

// Put encodes the data into the first ConnectDataLen bytes of b.
func (d *ConnectData) Put(b []byte) {
	b = b[:ConnectDataLen]
	clear(b)
	copy(b, d.HostID[:])
	binary.LittleEndian.PutUint16(b[ConnectOffsetController:], d.Controller)
	copy(b[ConnectOffsetSubsystem:][:maxName], d.Subsystem)
	copy(b[ConnectOffsetHost:][:maxName], d.Host)
}

const (
	nameLen = 256 // of the field
	maxName = 223 // of an NVMe qualified name
)

// DiscoverySubsystem is the well-known name of the discovery subsystem.
const DiscoverySubsystem = "nqn.2014-08.org.nvmexpress.discovery"

// CheckName returns an error for a text that is no NVMe qualified name.
func CheckName(name string) error {
	if len(name) > maxName || len(name) < 11 || name[:4] != "nqn." {
		return fmt.Errorf("nvme: %q is no NVMe qualified name: one begins with nqn.yyyy-mm. and has at most %d bytes", name, maxName)
	}
	return nil
}

// text is the text in a field that ends with its first zero.
func text(b []byte) string {
	if end := bytes.IndexByte(b, 0); end >= 0 {
		b = b[:end]
	}
	return string(b)
}

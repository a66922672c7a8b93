package nvme

import (
	"encoding/binary"
	"fmt"
)

// PrivateLen is the length of the private data of a connection request and of an
// accept, in bytes.
const PrivateLen = 32

// rejectLen is the length of the private data of a reject.
const rejectLen = 4

// ConnectRequest is the private data of a connection request: what the RDMA transport
// needs to know of a queue before its Connect command.
type ConnectRequest struct {
	RecordFormat uint16
	QueueID      uint16
	RecvSize     uint16 // how many responses the host has receives for
	SendSize     uint16 // 0's based: how many commands the host sends at most
	Controller   uint16 // of an I/O queue, for targets that connect by it; else 0
}

// Entries is how many entries the queue has.
func (r ConnectRequest) Entries() int { return int(r.SendSize) + 1 }

// ParseConnectRequest decodes the private data of a connection request. Some networks
// append zeros.
func ParseConnectRequest(b []byte) (ConnectRequest, RejectStatus) {
	if len(b) < PrivateLen {
		return ConnectRequest{}, RejectPrivateLength
	}
	le := binary.LittleEndian
	r := ConnectRequest{
		RecordFormat: le.Uint16(b), QueueID: le.Uint16(b[2:]), RecvSize: le.Uint16(b[4:]), SendSize: le.Uint16(b[6:]),
		Controller: le.Uint16(b[8:]),
	}
	if r.RecordFormat != 0 {
		return r, RejectRecordFormat
	}
	return r, 0
}

// Append appends the private data to b.
func (r ConnectRequest) Append(b []byte) []byte {
	for _, v := range [...]uint16{r.RecordFormat, r.QueueID, r.RecvSize, r.SendSize, r.Controller} {
		b = binary.LittleEndian.AppendUint16(b, v)
	}
	return append(b, make([]byte, PrivateLen-10)...)
}

// AppendAccept appends the private data of an accept: how many commands the target has
// receives for.
func AppendAccept(b []byte, recvSize uint16) []byte {
	b = binary.LittleEndian.AppendUint16(b, 0)
	b = binary.LittleEndian.AppendUint16(b, recvSize)
	return append(b, make([]byte, PrivateLen-4)...)
}

// ParseAccept decodes the private data of an accept.
func ParseAccept(b []byte) (recvSize uint16, err error) {
	if len(b) < PrivateLen || binary.LittleEndian.Uint16(b) != 0 {
		return 0, fmt.Errorf("nvme: the private data of the accept is not that of an NVMe target: % x", b)
	}
	return binary.LittleEndian.Uint16(b[2:]), nil
}

// RejectStatus says why a target rejects a connection request.
type RejectStatus uint16

// Reasons to reject a connection request.
const (
	RejectPrivateLength RejectStatus = 0x01
	RejectRecordFormat  RejectStatus = 0x02
	RejectQueueID       RejectStatus = 0x03
	RejectSendSize      RejectStatus = 0x04
	RejectRecvSize      RejectStatus = 0x05
	RejectNoResources   RejectStatus = 0x06
	RejectReadsIn       RejectStatus = 0x07
	RejectReadsOut      RejectStatus = 0x08
	RejectController    RejectStatus = 0x09
)

var rejectNames = map[RejectStatus]string{
	RejectPrivateLength: "Invalid Private Data Length",
	RejectRecordFormat:  "Invalid RECFMT",
	RejectQueueID:       "Invalid QID",
	RejectSendSize:      "Invalid HSQSIZE",
	RejectRecvSize:      "Invalid HRQSIZE",
	RejectNoResources:   "No Resources",
	RejectReadsIn:       "Invalid IRD",
	RejectReadsOut:      "Invalid ORD",
	RejectController:    "Invalid CNTLID",
}

// String is the specification's name of the reason.
func (s RejectStatus) String() string {
	if name := rejectNames[s]; name != "" {
		return name
	}
	return fmt.Sprintf("reject status %#02x", uint16(s))
}

// Append appends the private data of a reject to b.
func (s RejectStatus) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint16(b, 0)
	return binary.LittleEndian.AppendUint16(b, uint16(s))
}

// ParseReject decodes the private data of a reject; ok is false if it is not an NVMe
// target's.
func ParseReject(b []byte) (s RejectStatus, ok bool) {
	if len(b) < rejectLen || binary.LittleEndian.Uint16(b) != 0 {
		return 0, false
	}
	return RejectStatus(binary.LittleEndian.Uint16(b[2:])), true
}

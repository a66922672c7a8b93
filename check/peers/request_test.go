package peers

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"godat/examples/blockstore/block"
	"godat/examples/blockstore/proto"
	"godat/examples/nvmeof/nvme"
	"godat/mem"
)

// asked is what a request may depend on.
type asked struct {
	n      int               // how many requests the peer has made before
	seed   uint8             // chooses among requests
	size   int               // of what the request carries, roughly
	memory mem.RemoteSegment // the peer's, for the server's RDMA
}

// text is n bytes that differ with the seed.
func text(seed uint8, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)*3 ^ byte(i>>8) ^ seed
	}
	return b
}

// The wire format of package rpc, and kv's methods, as far as a peer needs them to be heard.
const (
	callVersion = 2
	callSlots   = 16
	callHeader  = 16
	callSource  = 1 // flags
	callSink    = 2
	kvPut       = 1
	kvGet       = 2
	kvShort     = 512
)

func callHello(seed uint8, _ mem.RemoteSegment) []byte {
	b := binary.BigEndian.AppendUint16([]byte("DATC"), callVersion)
	b = binary.BigEndian.AppendUint16(b, callSlots)
	b = binary.BigEndian.AppendUint32(b, 2+uint32(seed)%64)
	return binary.BigEndian.AppendUint32(b, 4096)
}

// callRequest stores or gets one of eight values, short and long, in the slot of its turn.
func callRequest(a asked) []byte {
	key := fmt.Sprintf("k%d", a.seed%8)
	flags, method, payload := byte(0), uint16(kvPut), []byte(key)
	switch {
	case a.seed&8 == 0:
		flags, method = callSink, kvGet
	case a.size <= kvShort:
		payload = append(append(payload, 0), text(a.seed, a.size)...)
	default:
		flags = callSource
		a.memory.Len = uint32(a.size)
	}
	return call(a, flags, method, payload)
}

// call is a call in the slot of its turn.
func call(a asked, flags byte, method uint16, payload []byte) []byte {
	m := make([]byte, callHeader)
	m[0], m[1] = 1, flags
	binary.BigEndian.PutUint16(m[2:], method)
	binary.BigEndian.PutUint32(m[4:], uint32(a.n%callSlots)|uint32(a.n/callSlots+1)<<16)
	if flags != 0 {
		m, _ = a.memory.AppendBinary(m)
	}
	return append(m, payload...)
}

// limits are what the block store gives its clients.
var limits = proto.Limits{Slots: 16, Block: 4096}

// someBlocks is how many blocks there are.
const someBlocks = 32

func blockOf(seed uint8) []byte {
	n := int(seed % someBlocks)
	return text(uint8(n), 1+(n*131)%limits.Block)
}

// blocks are all blocks, one every limits.Block bytes.
func blocks() []byte {
	all := make([]byte, someBlocks*limits.Block)
	for n := range someBlocks {
		copy(all[n*limits.Block:], blockOf(uint8(n)))
	}
	return all
}

// blockRequest stores or gets a block, or is about the root.
func blockRequest(a asked) []byte {
	data := blockOf(a.seed)
	id := block.IDOf(data)
	switch a.seed >> 5 {
	case 0, 1, 2, 3:
		a.memory.Addr += sinks + uint64(a.seed%someBlocks)*uint64(limits.Block)
		a.memory.Len = uint32(len(data))
		return call(a, callSource, proto.Put, id[:])
	case 4, 5:
		return call(a, callSink, proto.Get, id[:])
	case 6:
		return call(a, 0, proto.Root, nil)
	default:
		return call(a, 0, proto.SetRoot, id[:])
	}
}

// echoRequest is for the echo of messages, whose handlers work by the first byte.
func echoRequest(a asked) []byte { return text(a.seed, a.size) }

// The wire format of package stream, as far as a peer needs it to be heard.
const (
	streamVersion = 3
	streamHeader  = 32
	streamInline  = 224
	streamRing    = 4 << 10
)

func streamHello(_ uint8, memory mem.RemoteSegment) []byte {
	b := append([]byte("DATS"), streamVersion, 0, 0, 0)
	b = binary.LittleEndian.AppendUint64(b, memory.Addr)
	b = binary.LittleEndian.AppendUint32(b, memory.Context)
	b = binary.LittleEndian.AppendUint32(b, streamRing)
	b = binary.LittleEndian.AppendUint32(b, 16)
	return append(b, 0, 0, 0, 0)
}

// ringOf is the ring that a hello tells of.
func ringOf(b []byte) mem.RemoteSegment {
	return mem.RemoteSegment{Addr: binary.LittleEndian.Uint64(b), Context: binary.LittleEndian.Uint32(b[8:]), Len: binary.LittleEndian.Uint32(b[12:])}
}

// streamRequest is a message with bytes in it, as the first one would be, or with a flag.
func streamRequest(a asked) []byte {
	n := min(a.size, streamInline)
	b := make([]byte, streamHeader+n)
	flags := uint64(0)
	if a.seed%4 == 3 {
		flags = 1 << (a.seed / 4 % 5)
	}
	binary.LittleEndian.PutUint64(b, uint64((a.n+1)*n))
	binary.LittleEndian.PutUint64(b[24:], uint64(n)|flags<<16|streamVersion<<56)
	copy(b[streamHeader:], text(a.seed, n))
	return b
}

// The names of the target and of the hosts.
const (
	subsystem = "nqn.2026-01.example.godat:peers"
	hostName  = "nqn.2026-01.example.godat:a-peer"
)

// queueOf is the queue that a host of a seed connects: the admin queue more often than another.
func queueOf(seed uint8) uint16 { return uint16(max(0, int(seed%4)-1)) }

func nvmeHello(seed uint8, _ mem.RemoteSegment) []byte {
	return nvme.ConnectRequest{QueueID: queueOf(seed), RecvSize: 32, SendSize: 31, Controller: uint16(seed)}.Append(nil)
}

// nvmeRequest is a Connect, then what enables the controller, then commands.
func nvmeRequest(a asked) []byte {
	var c nvme.Command
	var data []byte
	switch a.n {
	case 0:
		c = nvme.Connect{QueueID: queueOf(a.seed), QueueSize: 31, KeepAlive: 15000}.Command()
		d := nvme.ConnectData{Controller: nvme.DynamicController, Subsystem: subsystem, Host: hostName}
		if queueOf(a.seed) != 0 {
			d.Controller = uint16(1 + a.size%64)
		}
		data = make([]byte, nvme.ConnectDataLen)
		d.Put(data)
	case 1:
		c = nvme.PropertySet(nvme.PropertyCC, nvme.ConfigEnable|nvme.ConfigEntrySizes)
	default:
		c, data = nvmeCommand(a)
	}
	c.CID, c.Flags = uint16(a.n), nvme.UsesList
	c.Data = nvme.Descriptor{Type: nvme.InCapsule, Length: uint32(len(data))}
	if data == nil && a.n > 1 {
		c.Data = nvme.Descriptor{Type: nvme.Keyed, Address: a.memory.Addr, Length: uint32(a.size), Key: a.memory.Context}
		if a.seed&64 != 0 {
			c.Data.Type = nvme.KeyedInvalidate
		}
	}
	b := make([]byte, nvme.CommandLen)
	c.Put(b)
	return append(b, data...)
}

// nvmeCommand is an admin or an I/O command; which one it is depends on the queue.
func nvmeCommand(a asked) (c nvme.Command, data []byte) {
	switch a.seed % 8 {
	case 0:
		return nvme.Identify(nvme.Selector(a.seed/8), uint32(a.seed/32)), nil
	case 1:
		return nvme.GetLogPage(nvme.LogPage(a.seed/8), uint64(a.size), uint32(max(4, a.size))), nil
	case 2:
		return nvme.SetFeature(nvme.Feature(a.seed/8), uint32(a.size)), nil
	case 3:
		return nvme.GetFeature(nvme.Feature(a.seed / 8)), nil
	case 4:
		return nvme.PropertyGet(nvme.Property(a.seed / 8 * 4)), nil
	case 5:
		return nvme.PropertySet(nvme.PropertyCC, uint32(a.size)<<8|uint32(a.seed/8)), nil
	}
	c = nvme.Command{Opcode: nvme.Opcode(a.seed / 8 % 16), NSID: uint32(1 + a.seed/128)}
	c.SetRange(uint64(a.seed), uint32(1+a.size/4096))
	if a.seed&128 != 0 {
		data = text(a.seed, min(a.size, 4096))
	}
	return c, data
}

// contents is what a step sends: what a client says, a variant of it, or bytes.
func contents(s step, client func(asked) []byte, a asked) []byte {
	message := client(a)
	switch s.content {
	case damaged:
		if n := len(message); n > 0 {
			message[(s.at/8)%n] ^= s.seed | 1
		}
	case cut:
		message = bytes.Repeat(append(message, 0), 1+s.size/(len(message)+1))[:s.size]
	case asClients:
	case random:
		message = text(s.seed^0xa5, s.size)
	}
	return message
}

package hw

import "strings"

// Privileges say what may be done with registered memory:
// DAT_MEM_PRIV_FLAGS, with its numbers.
type Privileges uint8

// The memory privileges.
const (
	LocalRead    Privileges = 0x01 // source of sends and RDMA writes
	RemoteRead   Privileges = 0x02 // target of a peer's RDMA read
	LocalWrite   Privileges = 0x10 // receive buffer, sink of RDMA reads and atomics
	RemoteWrite  Privileges = 0x20 // target of a peer's RDMA write
	RemoteAtomic Privileges = 0x40 // target of a peer's atomics (InfiniBand extension)

	NoPrivileges  Privileges = 0
	AllPrivileges            = LocalRead | RemoteRead | LocalWrite | RemoteWrite // all but RemoteAtomic
)

func (p Privileges) String() string {
	if p == 0 {
		return "NONE"
	}
	var names []string
	for _, b := range [...]struct {
		bit  Privileges
		name string
	}{
		{LocalRead, "LOCAL_READ"},
		{RemoteRead, "REMOTE_READ"},
		{LocalWrite, "LOCAL_WRITE"},
		{RemoteWrite, "REMOTE_WRITE"},
		{RemoteAtomic, "REMOTE_ATOMIC"},
	} {
		if p&b.bit != 0 {
			names, p = append(names, b.name), p&^b.bit
		}
	}
	if p != 0 {
		names = append(names, text(nil, int(p), "Privileges"))
	}
	return strings.Join(names, "|")
}

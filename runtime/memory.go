package runtime

import (
	"godat/ep"
	"godat/hw"
	"godat/mem"
)

// Segment is a part of a local region, from which a post takes its bytes or into which
// it puts them: DAT_LMR_TRIPLET. [mem.LMR.Segment] and [mem.Buffer.Segment] make one.
type Segment = mem.Segment

// RemoteSegment is a part of a peer's region, the target of RDMA: DAT_RMR_TRIPLET.
// [mem.LMR.Remote] makes one; its owner sends it to the peer, in an encoding of
// [RemoteSegmentSize] bytes (AppendBinary) or in one of the program's own.
type RemoteSegment = mem.RemoteSegment

// RemoteSegmentSize is the length of an encoded RemoteSegment in bytes.
const RemoteSegmentSize = mem.RemoteSegmentSize

// ParseRemoteSegment takes a peer's segment from the first [RemoteSegmentSize] bytes of
// b. Fewer bytes are INVALID_PARAMETER. It accepts any 16 bytes: the peer's device
// decides, when the segment is used, whether it names memory that may be accessed.
func ParseRemoteSegment(b []byte) (RemoteSegment, error) { return mem.ParseRemoteSegment(b) }

// Binding is what a window is bound to: the memory and privileges of dat_rmr_bind.
// The zero Binding unbinds. Its fields: go doc godat/mem Binding.
type Binding = mem.Binding

// RMROf is the window that the completion of a bind is about, or nil.
func RMROf(ev Event) *RMR { return ep.RMROf(ev) }

// SharedID names memory that several regions share: the id of DAT_SHARED_MEMORY.
type SharedID = mem.SharedID

// Privileges say what may be done with memory: DAT_MEM_PRIV_FLAGS, with its numbers.
type Privileges = hw.Privileges

// The privileges of a region. A post needs the local ones, a peer the remote ones.
const (
	NoPrivileges  Privileges = hw.NoPrivileges
	LocalRead     Privileges = hw.LocalRead     // the source of sends and RDMA writes
	LocalWrite    Privileges = hw.LocalWrite    // a receive buffer; the target of RDMA reads and atomics
	RemoteRead    Privileges = hw.RemoteRead    // peers may read it
	RemoteWrite   Privileges = hw.RemoteWrite   // peers may write it
	RemoteAtomic  Privileges = hw.RemoteAtomic  // peers may do atomics on it: the InfiniBand extension's
	AllPrivileges Privileges = hw.AllPrivileges // all but RemoteAtomic
)

// MemoryStats say what memory an adapter has; [IA.MemoryStats] returns them.
type MemoryStats = mem.Stats

// MemoryOption modifies how [mem.PZ.Alloc] gets the memory of a region.
type MemoryOption = mem.Option

// WithHugePages asks [mem.PZ.Alloc] for 2 MiB pages: fewer translations for the
// processor, and fewer entries in a device's tables. On Linux they come from the
// reserved pool (vm.nr_hugepages) if it has enough, else the kernel is asked to make
// some. The region's range is rounded up to 2 MiB.
func WithHugePages() MemoryOption { return mem.WithHugePages() }

// WithAlignment asks [mem.PZ.Alloc] for an address that is a multiple of n bytes, a
// power of two up to 1 GiB. Without it memory begins at a page.
func WithAlignment(n int) MemoryOption { return mem.WithAlignment(n) }

// WithUnmapOnFree makes [mem.LMR.Free] return the address range to the system at once,
// so that a slice of it that the program still has faults. Without the option such a
// slice reads zeros for some time; [mem.WithUnmapOnFree] says for how long.
func WithUnmapOnFree() MemoryOption { return mem.WithUnmapOnFree() }

// MemType says how a region got its memory: DAT_MEM_TYPE.
type MemType = mem.MemType

// The types of memory.
const (
	MemVirtual       MemType = mem.MemVirtual       // of PZ.Alloc and PZ.Register
	MemLMR           MemType = mem.MemLMR           // of PZ.RegisterLMR: another region's
	MemSharedVirtual MemType = mem.MemSharedVirtual // of PZ.RegisterShared: the memory of an id
)

// RMRScope says which endpoints a window belongs to: DAT_RMR_SCOPE.
type RMRScope = mem.RMRScope

// The scopes of windows.
const (
	RMRScopeEP  RMRScope = mem.RMRScopeEP  // one endpoint binds it, and only its peer reaches it
	RMRScopePZ  RMRScope = mem.RMRScopePZ  // the endpoints of a zone
	RMRScopeAny RMRScope = mem.RMRScopeAny // as an attribute of a provider: either
)

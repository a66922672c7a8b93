package mem

import "godat/hw"

// MemType says where a region has its memory from: DAT_MEM_TYPE.
type MemType uint8

// The types of memory.
const (
	MemVirtual       MemType = 0 // a range of virtual memory
	MemLMR           MemType = 1 // the memory of another region
	MemSharedVirtual MemType = 2 // memory that an id names
)

// LMRParam describes a region: DAT_LMR_PARAM.
type LMRParam struct {
	IA                any // the interface adapter, a *runtime.IA
	Type              MemType
	Memory            []byte   // the region itself, not a copy
	From              *LMR     // of MemLMR: the region whose memory it is
	Shared            SharedID // of MemSharedVirtual: the memory's id
	Length            uint64   // bytes
	PZ                *PZ
	Privileges        hw.Privileges
	ZeroBased         bool // addresses in segments count from 0; always false: windows can be, see Binding
	Context           uint32
	RemoteContext     uint32
	RegisteredSize    uint64 // bytes that the device can reach: those of Memory
	RegisteredAddress uint64
}

// Query describes the region. A freed region is INVALID_HANDLE/LMR. It answers to
// dat_lmr_query.
func (l *LMR) Query() (LMRParam, error) {
	if l == nil || l.pz == nil || l.dead.Load() {
		return LMRParam{}, deadLMR("mem.LMR.Query")
	}
	return LMRParam{
		IA: l.pz.domain.ia, Type: l.kind, Memory: l.buf, From: l.from, Shared: l.shared, Length: uint64(len(l.buf)),
		PZ: l.pz, Privileges: l.priv, Context: l.context, RemoteContext: l.remote,
		RegisteredSize: uint64(len(l.buf)), RegisteredAddress: l.base,
	}, nil
}

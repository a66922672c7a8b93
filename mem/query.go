package mem

import "godat/hw"

// LMRField selects the fields that [LMR.Query] returns: DAT_LMR_PARAM_MASK, with
// its numbers.
type LMRField uint32

// The fields of a region.
const (
	LMRFieldIA                LMRField = 1 << iota // IA
	LMRFieldMemType                                // Type
	LMRFieldRegionDesc                             // Memory, From, Shared
	LMRFieldLength                                 // Length
	LMRFieldPZ                                     // PZ
	LMRFieldPrivileges                             // Privileges
	LMRFieldVAType                                 // ZeroBased
	LMRFieldContext                                // Context
	LMRFieldRemoteContext                          // RemoteContext
	LMRFieldRegisteredSize                         // RegisteredSize
	LMRFieldRegisteredAddress                      // RegisteredAddress
	LMRFieldAll               LMRField = 1<<iota - 1
)

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

// Query returns the fields that mask selects; the others are zero. A mask bit that
// names no field is INVALID_PARAMETER, a freed region INVALID_HANDLE/LMR.
// It answers to dat_lmr_query.
func (l *LMR) Query(mask LMRField) (LMRParam, error) {
	const op = "mem.LMR.Query"
	if l == nil || l.pz == nil || l.dead.Load() {
		return LMRParam{}, deadLMR(op)
	}
	if mask&^LMRFieldAll != 0 {
		return LMRParam{}, hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "mask %#x", uint32(mask))
	}
	var q LMRParam
	fill(mask&LMRFieldMemType, &q.Type, l.kind)
	fill(mask&LMRFieldRegionDesc, &q.From, l.from)
	fill(mask&LMRFieldRegionDesc, &q.Shared, l.shared)
	fill(mask&LMRFieldIA, &q.IA, l.pz.domain.ia)
	fill(mask&LMRFieldRegionDesc, &q.Memory, l.buf)
	fill(mask&LMRFieldLength, &q.Length, uint64(len(l.buf)))
	fill(mask&LMRFieldPZ, &q.PZ, l.pz)
	fill(mask&LMRFieldPrivileges, &q.Privileges, l.priv)
	fill(mask&LMRFieldContext, &q.Context, l.context)
	fill(mask&LMRFieldRemoteContext, &q.RemoteContext, l.remote)
	fill(mask&LMRFieldRegisteredSize, &q.RegisteredSize, uint64(len(l.buf)))
	fill(mask&LMRFieldRegisteredAddress, &q.RegisteredAddress, l.base)
	return q, nil
}

func fill[M ~uint32, T any](asked M, dst *T, v T) {
	if asked != 0 {
		*dst = v
	}
}

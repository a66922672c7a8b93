package runtime

import (
	"math"
	"strconv"
	"strings"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/mem"
)

// Param is what [IA.Query] returns.
type Param struct {
	Async    *evd.Dispatcher // of asynchronous errors; nil for none
	IA       IAAttr
	Provider ProviderAttr
}

// Query reports the attributes of the adapter and of its provider. A closed adapter is
// INVALID_HANDLE/IA. It answers to dat_ia_query.
func (ia *IA) Query() (Param, error) {
	if err := ia.enter("runtime.IA.Query"); err != nil {
		return Param{}, err
	}
	defer ia.gate.RUnlock()
	return Param{Async: ia.async.to, IA: adapterAttr(ia.attr), Provider: providerAttr(ia.attr)}, nil
}

// adapterAttr is what a device says of itself in DAT's terms.
func adapterAttr(a hw.Attr) IAAttr {
	q := IAAttr{
		AdapterName: a.Device, VendorName: a.Vendor, Hardware: a.Hardware, Firmware: a.Firmware, Address: a.Address,
		MaxEPs:         a.MaxQPs,
		MaxDTOPerEP:    a.MaxDepth,
		MaxReadPerEPIn: a.MaxReadsIn, MaxReadPerEPOut: a.MaxReadsOut,
		MaxEVDs:      math.MaxInt32, // they are software
		MaxEVDQLen:   evd.MaxQLen,
		MaxIOVPerDTO: min(a.MaxSendSegments, a.MaxRecvSegments),
		MaxLMRs:      min(a.MaxMRs, mem.MaxRegions), MaxLMRBlockSize: a.MaxMR, MaxLMRVirtualAddress: math.MaxUint64,
		MaxPZs:         a.MaxZones,
		MaxMessageSize: a.MaxMessage, MaxRDMASize: a.MaxRDMA,
		MaxRMRs: a.MaxWindows,
		MaxSRQs: a.MaxSRQs, MaxRecvPerSRQ: a.MaxSRQDepth,
		MaxIOVPerRead: a.MaxReadSegments, MaxIOVPerWrite: a.MaxSendSegments,
		// Each endpoint has read credits of its own, so together they have the product.
		MaxReadIn: product(a.MaxReadsIn, a.MaxQPs), MaxReadOut: product(a.MaxReadsOut, a.MaxQPs),
		MaxReadInGuaranteed: true, MaxReadOutGuaranteed: true,
		ZeroBased: a.ZeroBased,
	}
	if a.MaxWindows > 0 {
		q.MaxRMRTargetAddress = math.MaxUint64
	}
	if a.MaxSRQs > 0 {
		q.MaxEPPerSRQ = a.MaxQPs
	}
	if a.Ops.Has(hw.OpFetchAdd) || a.Ops.Has(hw.OpCompareSwap) || a.Ops.Has(hw.OpWriteImm) {
		q.Extension, q.ExtensionVersion = InfiniBandExt, IBExtensionVersion
	}
	return q
}

func product(a, b int) int {
	if a == 0 || b <= math.MaxInt32/a {
		return a * b
	}
	return math.MaxInt32
}

// providerAttr is what the provider and this library do together.
func providerAttr(a hw.Attr) ProviderAttr {
	q := ProviderAttr{
		Name: a.Provider, Version: version, DAPLVersion: [2]int{2, 0},
		LMRTypes:        []mem.MemType{mem.MemVirtual, mem.MemLMR, mem.MemSharedVirtual},
		IOVOwnership:    IOVConsumer,
		QoS:             ep.BestEffort,
		CompletionFlags: allFlags,
		ThreadSafe:      true,
		MaxPrivateData:  a.MaxPrivate,
		EPCreator:       EPCreatorIfAsked,
		PZSupport:       PZUnique,
		Alignment:       a.Alignment,
		StreamMerging:   mergeAll(),
		SRQ:             a.MaxSRQs > 0, SRQInfo: a.MaxSRQs > 0, EPRecvInfo: true,
		AsyncReturnGuaranteed: true,
		ContextExposure:       a.ExposesSink,
		RMRScope:              mem.RMRScopeAny,
		SpecificAttr:          specific(a),
	}
	if a.MaxSRQs > 0 {
		q.SRQWatermarks = 2 // the low one, and an endpoint's soft high one
	}
	return q
}

// mergeAll says that a dispatcher may take any streams together, since it is a software
// queue.
func mergeAll() (m [6][6]bool) {
	for i := range m {
		for j := range m[i] {
			m[i][j] = true
		}
	}
	return m
}

// specific are the attributes by which a consumer finds extensions.
func specific(a hw.Attr) []NamedAttr {
	attrs := []NamedAttr{
		{"DAT_IB_PROVIDER_NAME", a.Provider},
		{"DAT_IB_DEVICE_NAME", a.Device},
		{"DAT_EXTENSION_INTERFACE", "TRUE"},
		{"DAT_COUNTERS", "TRUE"},
		{"DAT_IB_UD", "FALSE"},
	}
	for _, x := range [...]struct {
		name string
		op   hw.Op
	}{
		{"DAT_IB_FETCH_AND_ADD", hw.OpFetchAdd},
		{"DAT_IB_CMP_AND_SWAP", hw.OpCompareSwap},
		{"DAT_IB_IMMED_DATA", hw.OpWriteImm},
		{"DAT_IB_RDMA_READ", hw.OpRead},
	} {
		attrs = append(attrs, NamedAttr{x.name, strings.ToUpper(strconv.FormatBool(a.Ops.Has(x.op)))})
	}
	return attrs
}

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

// Query reports the attributes that the masks ask for; all others are zero. A
// bit that is no field is INVALID_PARAMETER, a closed adapter INVALID_HANDLE/IA.
// It answers to dat_ia_query.
func (ia *IA) Query(mask IAField, provider ProviderField) (Param, error) {
	const op = "runtime.IA.Query"
	if err := ia.enter(op); err != nil {
		return Param{}, err
	}
	defer ia.gate.RUnlock()
	if mask&^IAFieldAll != 0 {
		return Param{}, hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "mask %#x", uint64(mask))
	}
	if provider&^ProviderFieldAll != 0 {
		return Param{}, hw.Errorf(op, hw.InvalidParameter, hw.Arg4, "mask %#x", uint32(provider))
	}
	q := Param{Async: ia.async.to}
	fillIA(&q.IA, mask, ia.attr)
	fillLimits(&q.IA, mask, ia.attr)
	fillProvider(&q.Provider, provider, ia.attr)
	return q, nil
}

func fill[M ~uint32 | ~uint64, T any](asked M, dst *T, v T) {
	if asked != 0 {
		*dst = v
	}
}

// fillIA sets what identifies the adapter, and what it does in general.
func fillIA(q *IAAttr, m IAField, a hw.Attr) {
	fill(m&IAFieldAdapterName, &q.AdapterName, a.Device)
	fill(m&IAFieldVendorName, &q.VendorName, a.Vendor)
	fill(m&IAFieldHardwareMajor, &q.Hardware[0], a.Hardware[0])
	fill(m&IAFieldHardwareMinor, &q.Hardware[1], a.Hardware[1])
	fill(m&IAFieldFirmwareMajor, &q.Firmware[0], a.Firmware[0])
	fill(m&IAFieldFirmwareMinor, &q.Firmware[1], a.Firmware[1])
	fill(m&IAFieldAddress, &q.Address, a.Address)
	fill(m&IAFieldMaxReadPerEPInGuaranteed, &q.MaxReadInGuaranteed, true)
	fill(m&IAFieldMaxReadPerEPOutGuaranteed, &q.MaxReadOutGuaranteed, true)
	if a.Ops.Has(hw.OpFetchAdd) || a.Ops.Has(hw.OpCompareSwap) || a.Ops.Has(hw.OpWriteImm) {
		fill(m&IAFieldExtension, &q.Extension, InfiniBandExt)
		fill(m&IAFieldExtensionVersion, &q.ExtensionVersion, IBExtensionVersion)
	}
	fill(m&(IAFieldNumTransportAttr|IAFieldTransportAttr), &q.TransportAttr, nil)
	fill(m&(IAFieldNumVendorAttr|IAFieldVendorAttr), &q.VendorAttr, nil)
}

// fillLimits sets how much the adapter can do.
func fillLimits(q *IAAttr, m IAField, a hw.Attr) {
	fill(m&IAFieldMaxEPs, &q.MaxEPs, a.MaxQPs)
	fill(m&IAFieldMaxDTOPerEP, &q.MaxDTOPerEP, a.MaxDepth)
	fill(m&IAFieldMaxReadPerEPIn, &q.MaxReadPerEPIn, a.MaxReadsIn)
	fill(m&IAFieldMaxReadPerEPOut, &q.MaxReadPerEPOut, a.MaxReadsOut)
	fill(m&IAFieldMaxEVDs, &q.MaxEVDs, math.MaxInt32) // they are software
	fill(m&IAFieldMaxEVDQLen, &q.MaxEVDQLen, evd.MaxQLen)
	fill(m&IAFieldMaxIOVPerDTO, &q.MaxIOVPerDTO, min(a.MaxSendSegments, a.MaxRecvSegments))
	fill(m&IAFieldMaxLMRs, &q.MaxLMRs, min(a.MaxMRs, mem.MaxRegions))
	fill(m&IAFieldMaxLMRBlockSize, &q.MaxLMRBlockSize, a.MaxMR)
	fill(m&IAFieldMaxLMRVirtualAddress, &q.MaxLMRVirtualAddress, math.MaxUint64)
	fill(m&IAFieldMaxPZs, &q.MaxPZs, a.MaxZones)
	fill(m&IAFieldMaxMessageSize, &q.MaxMessageSize, a.MaxMessage)
	fill(m&IAFieldMaxRDMASize, &q.MaxRDMASize, a.MaxRDMA)
	fill(m&IAFieldMaxRMRs, &q.MaxRMRs, a.MaxWindows)
	fill(m&IAFieldZeroBased, &q.ZeroBased, a.ZeroBased)
	if a.MaxWindows > 0 {
		fill(m&IAFieldMaxRMRTargetAddress, &q.MaxRMRTargetAddress, math.MaxUint64)
	}
	fill(m&IAFieldMaxSRQs, &q.MaxSRQs, a.MaxSRQs)
	fill(m&IAFieldMaxRecvPerSRQ, &q.MaxRecvPerSRQ, a.MaxSRQDepth)
	if a.MaxSRQs > 0 {
		fill(m&IAFieldMaxEPPerSRQ, &q.MaxEPPerSRQ, a.MaxQPs)
	}
	fill(m&IAFieldMaxIOVPerRead, &q.MaxIOVPerRead, a.MaxReadSegments)
	fill(m&IAFieldMaxIOVPerWrite, &q.MaxIOVPerWrite, a.MaxSendSegments)
	// Each endpoint has read credits of its own, so together they have the product.
	fill(m&IAFieldMaxReadIn, &q.MaxReadIn, product(a.MaxReadsIn, a.MaxQPs))
	fill(m&IAFieldMaxReadOut, &q.MaxReadOut, product(a.MaxReadsOut, a.MaxQPs))
}

func product(a, b int) int {
	if a == 0 || b <= math.MaxInt32/a {
		return a * b
	}
	return math.MaxInt32
}

// fillProvider sets what the provider and this library do together.
func fillProvider(q *ProviderAttr, m ProviderField, a hw.Attr) {
	fill(m&ProviderFieldName, &q.Name, a.Provider)
	fill(m&ProviderFieldVersionMajor, &q.Version[0], version[0])
	fill(m&ProviderFieldVersionMinor, &q.Version[1], version[1])
	fill(m&ProviderFieldDAPLMajor, &q.DAPLVersion[0], 2)
	fill(m&ProviderFieldDAPLMinor, &q.DAPLVersion[1], 0)
	fill(m&ProviderFieldLMRTypes, &q.LMRTypes, []mem.MemType{mem.MemVirtual, mem.MemLMR, mem.MemSharedVirtual})
	fill(m&ProviderFieldIOVOwnership, &q.IOVOwnership, IOVConsumer)
	fill(m&ProviderFieldQoS, &q.QoS, ep.BestEffort)
	fill(m&ProviderFieldCompletionFlags, &q.CompletionFlags, allFlags)
	fill(m&ProviderFieldThreadSafe, &q.ThreadSafe, true)
	fill(m&ProviderFieldMaxPrivateData, &q.MaxPrivateData, a.MaxPrivate)
	fill(m&ProviderFieldEPCreator, &q.EPCreator, EPCreatorIfAsked)
	fill(m&ProviderFieldPZSupport, &q.PZSupport, PZUnique)
	fill(m&ProviderFieldAlignment, &q.Alignment, a.Alignment)
	fill(m&ProviderFieldStreamMerging, &q.StreamMerging, mergeAll())
	fill(m&ProviderFieldSRQ, &q.SRQ, a.MaxSRQs > 0)
	fill(m&ProviderFieldSRQInfo, &q.SRQInfo, a.MaxSRQs > 0)
	if a.MaxSRQs > 0 {
		fill(m&ProviderFieldSRQWatermarks, &q.SRQWatermarks, 2) // the low one, and an endpoint's soft high one
	}
	fill(m&ProviderFieldEPRecvInfo, &q.EPRecvInfo, true)
	fill(m&ProviderFieldAsyncReturnGuaranteed, &q.AsyncReturnGuaranteed, true)
	fill(m&ProviderFieldContextExposure, &q.ContextExposure, a.ExposesSink)
	fill(m&ProviderFieldRMRScope, &q.RMRScope, mem.RMRScopeAny)
	fill(m&(ProviderFieldNumSpecificAttr|ProviderFieldSpecificAttr), &q.SpecificAttr, specific(a))
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

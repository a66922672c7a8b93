package runtime

// IAField is a mask of the adapter's attributes that [IA.Query] reports:
// DAT_IA_ATTR_MASK, with its numbers.
type IAField uint64

// The fields of an adapter, in the order of [IAAttr].
const (
	IAFieldAdapterName IAField = 1 << iota
	IAFieldVendorName
	IAFieldHardwareMajor
	IAFieldHardwareMinor
	IAFieldFirmwareMajor
	IAFieldFirmwareMinor
	IAFieldAddress
	IAFieldMaxEPs
	IAFieldMaxDTOPerEP
	IAFieldMaxReadPerEPIn
	IAFieldMaxReadPerEPOut
	IAFieldMaxEVDs
	IAFieldMaxEVDQLen
	IAFieldMaxIOVPerDTO
	IAFieldMaxLMRs
	IAFieldMaxLMRBlockSize
	IAFieldMaxLMRVirtualAddress
	IAFieldMaxPZs
	IAFieldMaxMessageSize
	IAFieldMaxRDMASize
	IAFieldMaxRMRs
	IAFieldMaxRMRTargetAddress
	IAFieldMaxSRQs
	IAFieldMaxEPPerSRQ
	IAFieldMaxRecvPerSRQ
	IAFieldMaxIOVPerRead
	IAFieldMaxIOVPerWrite
	IAFieldMaxReadIn
	IAFieldMaxReadOut
	IAFieldMaxReadPerEPInGuaranteed
	IAFieldMaxReadPerEPOutGuaranteed
	IAFieldZeroBased
	IAFieldExtension
	IAFieldExtensionVersion
	IAFieldNumTransportAttr // asks for TransportAttr, whose length is the number
	IAFieldTransportAttr
	IAFieldNumVendorAttr // asks for VendorAttr, whose length is the number
	IAFieldVendorAttr

	IAFieldAll  = 1<<iota - 1
	IAFieldNone = IAField(0)
)

// ProviderField is a mask of the provider's attributes that [IA.Query] reports:
// DAT_PROVIDER_ATTR_MASK, with its numbers.
type ProviderField uint32

// The fields of a provider, in the order of [ProviderAttr].
const (
	ProviderFieldName ProviderField = 1 << iota
	ProviderFieldVersionMajor
	ProviderFieldVersionMinor
	ProviderFieldDAPLMajor
	ProviderFieldDAPLMinor
	ProviderFieldLMRTypes
	ProviderFieldIOVOwnership
	ProviderFieldQoS
	ProviderFieldCompletionFlags
	ProviderFieldThreadSafe
	ProviderFieldMaxPrivateData
	ProviderFieldMultipath
	ProviderFieldEPCreator
	ProviderFieldPZSupport
	ProviderFieldAlignment
	ProviderFieldStreamMerging
	ProviderFieldSRQ
	ProviderFieldSRQWatermarks
	ProviderFieldSRQPZDifference
	ProviderFieldSRQInfo
	ProviderFieldEPRecvInfo
	ProviderFieldLMRSyncRequired
	ProviderFieldAsyncReturnGuaranteed
	ProviderFieldWriteForReadRequired
	ProviderFieldContextExposure
	ProviderFieldRMRScope
	ProviderFieldSignalSafe
	ProviderFieldHA
	ProviderFieldHALoadBalancing
	ProviderFieldNumSpecificAttr // asks for SpecificAttr, whose length is the number
	ProviderFieldSpecificAttr

	ProviderFieldAll  = 1<<iota - 1
	ProviderFieldNone = ProviderField(0)
)

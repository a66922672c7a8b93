package main

// source is a package whose names programs need.
type source struct {
	dir string // below the module
	// names are the package's types, functions, variables and untyped constants. One that has
	// another name in package runtime has that name behind a colon. A type brings its
	// constants along.
	names []string
	// constants are the types whose constants have other names in package runtime.
	constants map[string]naming
	// unseen are constants that no event or object carries, and that have no name in
	// package runtime.
	unseen []string
}

// naming says what the constants of a type are called in package runtime: they begin with
// prefix, and lose another one first. A constant that has the prefix keeps its name.
type naming struct{ prefix, without string }

var table = []source{
	{dir: "ep", names: []string{
		"Endpoint", "Config:EndpointConfig", "Attr:EndpointAttr", "Of:EndpointOf", "NoDTOs",
		"NoWatermark", "Unknown", "State:EndpointState", "Status:EndpointStatus", "Param:EndpointParam",
		"Field:EndpointField", "EndpointCounters", "EndpointSnapshot", "QueueSnapshot", "QueueCounts", "Moved",
		"StoryLine", "CauseSnapshot", "PointSnapshot", "PointCounts", "SRQSnapshot", "EndCount", "EndSnapshot",
		"Counters:ConnectionCounters", "ConnectConfig", "ConnectFlags", "CloseFlags", "ServiceType",
		"QoS", "Comm", "DTO", "Outbox", "NewOutbox", "Credits", "NewCredits", "RMROf", "SRQ", "SRQAttr",
		"SRQOf", "SRQState", "SRQParam", "SRQField", "PSP", "PSPConfig", "PSPFlags", "PSPParam",
		"PSPField", "RSP", "RSPConfig", "RSPParam", "RSPField", "CSP", "CSPConfig", "CSPParam",
		"CSPField", "CR", "CRParam", "RequestOf", "AddressHandle",
	}, constants: map[string]naming{
		"State": {prefix: "State"}, "Field": {prefix: "Endpoint"},
	}, unseen: []string{
		"UnconfiguredUnconnected", "UnconfiguredReserved", "UnconfiguredPassive", "UnconfiguredTentative",
		"ConnectedSinglePath", "ConnectedMultiPath", "SRQShutdown",
	}},
	{dir: "evd", names: []string{
		"Dispatcher", "Config:DispatcherConfig", "Mode:DispatcherMode", "State:DispatcherState",
		"Param:DispatcherParam", "Field:DispatcherField", "Counters:DispatcherCounters",
		"DispatcherSnapshot", "Histogram", "NewHistogram", "HistogramSnapshot", "HistogramBar", "Until",
		"Route", "OneShot", "Batch", "Contexts", "NewContexts", "CNO", "CNOConfig", "CNOParam",
		"CNOField", "Agent", "ProxyType",
	}, constants: map[string]naming{
		"State": {prefix: "Dispatcher", without: "State"}, "Field": {prefix: "Dispatcher"},
	}},
	{dir: "mem", names: []string{
		"PZ", "PZParam", "PZField", "LMR", "LMRParam", "LMRField", "MemType", "SharedID", "Segment",
		"Option:MemoryOption", "WithHugePages", "WithAlignment", "WithUnmapOnFree", "RemoteSegment",
		"RemoteSegmentSize", "ParseRemoteSegment", "RMR", "RMRParam", "RMRField", "RMRScope", "Binding",
		"Buffer", "BufferPool", "PoolSnapshot", "Holder", "BufferPoolConfig", "Stats:MemoryStats",
		"Counters:MemoryCounters",
	}},
	{dir: "hw/event", names: []string{
		"Event", "Number:EventNumber", "Flags:EventFlags", "Error:EventError", "DTO:Completion",
		"Connection:ConnectionChange", "Reason", "Streams",
	}, constants: map[string]naming{
		"Flags": {prefix: "Event"}, "Reason": {prefix: "Reason"},
	}, unseen: []string{
		"AsyncDownTo1", "AsyncUpToMultiPath", "ExtensionEvent", "IBUDConnectionRequest", "IBUDEstablished", "IBUDReject", "IBUDError",
		"IBCollective", "IWExtensionEvent",
	}},
	{dir: "hw", names: []string{
		"Op", "OpSet", "Flags", "Status", "StatusError", "Privileges", "Attr:DeviceAttr",
		"ListenerCounts", "Flow", "Watcher", "PollCounts", "Info:ProviderInfo", "Error", "Type:ErrorType", "Subtype:ErrorSubtype",
		"Strerror", "Cause", "PairAddr", "Layer", "Side", "ErrAbort", "ErrConnQualInUse",
		"ErrInsufficientResources", "ErrInternal", "ErrInvalidHandle", "ErrInvalidParameter",
		"ErrInvalidState", "ErrLength", "ErrModelNotSupported", "ErrProviderNotFound", "ErrPrivileges",
		"ErrProtection", "ErrQueueEmpty", "ErrQueueFull", "ErrTimeout", "ErrProviderAlreadyRegistered",
		"ErrProviderInUse", "ErrInvalidAddress", "ErrInterrupted", "ErrConnQualUnavailable",
		"ErrReservedLMR", "ErrPortInUse", "ErrCommNotSupported", "ErrNotImplemented",
	}, constants: map[string]naming{
		"Type": {prefix: "Type"}, "Subtype": {prefix: "Sub"},
	}, unseen: []string{"OpFastRegister", "OpInvalidate", "OpMark", "OpEnd", "StatusLocalMM"}},
}

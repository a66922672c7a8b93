package hw

// Type is the type of a DAT return code (DAT_RETURN_TYPE, bits 29-16).
type Type uint16

// The return types.
const (
	Success                   Type = 0
	Abort                     Type = 1  // the object was closed meanwhile
	ConnQualInUse             Type = 2  // the address or qualifier has a listener already
	InsufficientResources     Type = 3  // no more room, or memory; Sub says what ran out
	InternalError             Type = 4  // something failed inside the library, the provider or the device
	InvalidHandle             Type = 5  // nil, closed, or of another adapter; Sub says which handle
	InvalidParameter          Type = 6  // Text says which parameter, and why
	InvalidState              Type = 7  // not in this state, which Sub names
	LengthError               Type = 8  // too long, or of no length
	ModelNotSupported         Type = 9  // the provider does not have that
	ProviderNotFound          Type = 10 // Sub says what no provider has
	PrivilegesViolation       Type = 11 // a region's privileges forbid it
	ProtectionViolation       Type = 12 // a region's zone or bounds forbid it
	QueueEmpty                Type = 13
	QueueFull                 Type = 14
	TimeoutExpired            Type = 15 // a context's deadline
	ProviderAlreadyRegistered Type = 16
	ProviderInUse             Type = 17 // an adapter of it is open
	InvalidAddress            Type = 18 // Sub says why
	InterruptedCall           Type = 19 // a context was canceled
	ConnQualUnavailable       Type = 20
	ReservedLMR               Type = 21
	PortInUse                 Type = 22
	CommNotSupported          Type = 23
	ExtensionBase             Type = 0x1000 // extensions' types begin here
	NotImplemented            Type = 0x3fff
)

var typeText = map[Type]string{
	Success:                   "success",
	Abort:                     "operation aborted",
	ConnQualInUse:             "connection qualifier in use",
	InsufficientResources:     "insufficient resources",
	InternalError:             "internal error",
	InvalidHandle:             "invalid handle",
	InvalidParameter:          "invalid parameter",
	InvalidState:              "invalid state",
	LengthError:               "length error",
	ModelNotSupported:         "model not supported",
	ProviderNotFound:          "provider not found",
	PrivilegesViolation:       "privileges violation",
	ProtectionViolation:       "protection violation",
	QueueEmpty:                "queue empty",
	QueueFull:                 "queue full",
	TimeoutExpired:            "timeout expired",
	ProviderAlreadyRegistered: "provider already registered",
	ProviderInUse:             "provider in use",
	InvalidAddress:            "invalid address",
	InterruptedCall:           "interrupted call",
	ConnQualUnavailable:       "connection qualifier unavailable",
	ReservedLMR:               "reserved LMR",
	PortInUse:                 "port in use",
	CommNotSupported:          "comm not supported",
	ExtensionBase:             "extension",
	NotImplemented:            "not implemented",
}

// Subtype refines a Type (DAT_RETURN_SUBTYPE, bits 15-0), numbered as in DAT 2.0.
type Subtype uint16

// The return subtypes. Most belong to one type only: Resource* to
// InsufficientResources, Handle* to InvalidHandle, Arg* to InvalidParameter,
// State* to InvalidState, Privileges* and Protection* to their violations,
// Address* to InvalidAddress, the last four to ProviderNotFound.
const (
	NoSubtype                         Subtype = 0
	SubInterrupted                    Subtype = 1
	ResourceMemory                    Subtype = 2
	ResourceDevice                    Subtype = 3
	ResourceTEP                       Subtype = 4
	ResourceTEVD                      Subtype = 5
	ResourceProtectionDomain          Subtype = 6
	ResourceMemoryRegion              Subtype = 7
	ResourceErrorHandler              Subtype = 8
	ResourceCredits                   Subtype = 9
	ResourceSRQ                       Subtype = 10
	HandleIA                          Subtype = 11
	HandleEP                          Subtype = 12
	HandleLMR                         Subtype = 13
	HandleRMR                         Subtype = 14
	HandlePZ                          Subtype = 15
	HandlePSP                         Subtype = 16
	HandleRSP                         Subtype = 17
	HandleCR                          Subtype = 18
	HandleCNO                         Subtype = 19
	HandleEVDCR                       Subtype = 20
	HandleEVDRequest                  Subtype = 21
	HandleEVDRecv                     Subtype = 22
	HandleEVDConn                     Subtype = 23
	HandleEVDAsync                    Subtype = 24
	HandleSRQ                         Subtype = 25
	HandleCSP                         Subtype = 26
	Handle1                           Subtype = 27
	Handle2                           Subtype = 28
	Handle3                           Subtype = 29
	Handle4                           Subtype = 30
	Handle5                           Subtype = 31
	Handle6                           Subtype = 32
	Handle7                           Subtype = 33
	Handle8                           Subtype = 34
	Handle9                           Subtype = 35
	Handle10                          Subtype = 36
	Arg1                              Subtype = 37
	Arg2                              Subtype = 38
	Arg3                              Subtype = 39
	Arg4                              Subtype = 40
	Arg5                              Subtype = 41
	Arg6                              Subtype = 42
	Arg7                              Subtype = 43
	Arg8                              Subtype = 44
	Arg9                              Subtype = 45
	Arg10                             Subtype = 46
	StateEPUnconnected                Subtype = 47
	StateEPActiveConnectionPending    Subtype = 48
	StateEPPassiveConnectionPending   Subtype = 49
	StateEPTentativeConnectionPending Subtype = 50
	StateEPConnected                  Subtype = 51
	StateEPDisconnected               Subtype = 52
	StateEPReserved                   Subtype = 53
	StateEPCompletionPending          Subtype = 54
	StateEPDisconnectPending          Subtype = 55
	StateEPProviderControl            Subtype = 56
	StateEPNotReady                   Subtype = 57
	StateEPRecvWatermark              Subtype = 58
	StateEPPZ                         Subtype = 59
	StateEPEVDRequest                 Subtype = 60
	StateEPEVDRecv                    Subtype = 61
	StateEPEVDConnect                 Subtype = 62
	StateEPUnconfigured               Subtype = 63
	StateEPUnconfiguredReserved       Subtype = 64
	StateEPUnconfiguredPassive        Subtype = 65
	StateEPUnconfiguredTentative      Subtype = 66
	StateCNOInUse                     Subtype = 67
	StateCNODead                      Subtype = 68
	StateEVDOpen                      Subtype = 69
	StateEVDEnabled                   Subtype = 70
	StateEVDDisabled                  Subtype = 71
	StateEVDWaitable                  Subtype = 72
	StateEVDUnwaitable                Subtype = 73
	StateEVDInUse                     Subtype = 74
	StateEVDConfigNotify              Subtype = 75
	StateEVDConfigSolicited           Subtype = 76
	StateEVDConfigThreshold           Subtype = 77
	StateEVDWaiter                    Subtype = 78
	StateEVDAsync                     Subtype = 79
	StateIAInUse                      Subtype = 80
	StateLMRInUse                     Subtype = 81
	StateLMRFree                      Subtype = 82
	StatePZInUse                      Subtype = 83
	StatePZFree                       Subtype = 84
	StateSRQOperational               Subtype = 85
	StateSRQError                     Subtype = 86
	StateSRQInUse                     Subtype = 87
	StateSRQShutdown                  Subtype = 88
	PrivilegesRead                    Subtype = 89
	PrivilegesWrite                   Subtype = 90
	PrivilegesRDMARead                Subtype = 91
	PrivilegesRDMAWrite               Subtype = 92
	ProtectionRead                    Subtype = 93
	ProtectionWrite                   Subtype = 94
	ProtectionRDMARead                Subtype = 95
	ProtectionRDMAWrite               Subtype = 96
	AddressUnsupported                Subtype = 97
	AddressUnreachable                Subtype = 98
	AddressMalformed                  Subtype = 99
	NameNotRegistered                 Subtype = 100
	MajorNotFound                     Subtype = 101
	MinorNotFound                     Subtype = 102
	ThreadSafetyNotFound              Subtype = 103
)

var subtypeText = [...]string{
	NoSubtype:                         "",
	SubInterrupted:                    "interrupted",
	ResourceMemory:                    "memory",
	ResourceDevice:                    "device",
	ResourceTEP:                       "transport endpoint",
	ResourceTEVD:                      "event dispatcher",
	ResourceProtectionDomain:          "protection domain",
	ResourceMemoryRegion:              "memory region",
	ResourceErrorHandler:              "error handler",
	ResourceCredits:                   "credits",
	ResourceSRQ:                       "shared receive queue",
	HandleIA:                          "IA",
	HandleEP:                          "EP",
	HandleLMR:                         "LMR",
	HandleRMR:                         "RMR",
	HandlePZ:                          "PZ",
	HandlePSP:                         "PSP",
	HandleRSP:                         "RSP",
	HandleCR:                          "CR",
	HandleCNO:                         "CNO",
	HandleEVDCR:                       "connection request EVD",
	HandleEVDRequest:                  "request EVD",
	HandleEVDRecv:                     "receive EVD",
	HandleEVDConn:                     "connection EVD",
	HandleEVDAsync:                    "asynchronous EVD",
	HandleSRQ:                         "SRQ",
	HandleCSP:                         "CSP",
	Handle1:                           "argument 1",
	Handle2:                           "argument 2",
	Handle3:                           "argument 3",
	Handle4:                           "argument 4",
	Handle5:                           "argument 5",
	Handle6:                           "argument 6",
	Handle7:                           "argument 7",
	Handle8:                           "argument 8",
	Handle9:                           "argument 9",
	Handle10:                          "argument 10",
	Arg1:                              "argument 1",
	Arg2:                              "argument 2",
	Arg3:                              "argument 3",
	Arg4:                              "argument 4",
	Arg5:                              "argument 5",
	Arg6:                              "argument 6",
	Arg7:                              "argument 7",
	Arg8:                              "argument 8",
	Arg9:                              "argument 9",
	Arg10:                             "argument 10",
	StateEPUnconnected:                "EP unconnected",
	StateEPActiveConnectionPending:    "EP active connection pending",
	StateEPPassiveConnectionPending:   "EP passive connection pending",
	StateEPTentativeConnectionPending: "EP tentative connection pending",
	StateEPConnected:                  "EP connected",
	StateEPDisconnected:               "EP disconnected",
	StateEPReserved:                   "EP reserved",
	StateEPCompletionPending:          "EP completion pending",
	StateEPDisconnectPending:          "EP disconnect pending",
	StateEPProviderControl:            "EP under provider control",
	StateEPNotReady:                   "EP not ready",
	StateEPRecvWatermark:              "EP receive watermark",
	StateEPPZ:                         "EP has no PZ",
	StateEPEVDRequest:                 "EP has no request EVD",
	StateEPEVDRecv:                    "EP has no receive EVD",
	StateEPEVDConnect:                 "EP has no connection EVD",
	StateEPUnconfigured:               "EP unconfigured",
	StateEPUnconfiguredReserved:       "EP unconfigured, reserved",
	StateEPUnconfiguredPassive:        "EP unconfigured, passive",
	StateEPUnconfiguredTentative:      "EP unconfigured, tentative",
	StateCNOInUse:                     "CNO in use",
	StateCNODead:                      "CNO dead",
	StateEVDOpen:                      "EVD open",
	StateEVDEnabled:                   "EVD enabled",
	StateEVDDisabled:                  "EVD disabled",
	StateEVDWaitable:                  "EVD waitable",
	StateEVDUnwaitable:                "EVD unwaitable",
	StateEVDInUse:                     "EVD in use",
	StateEVDConfigNotify:              "EVD configured for notification",
	StateEVDConfigSolicited:           "EVD configured for solicited waits",
	StateEVDConfigThreshold:           "EVD configured for thresholds",
	StateEVDWaiter:                    "EVD has a waiter",
	StateEVDAsync:                     "EVD is asynchronous",
	StateIAInUse:                      "IA in use",
	StateLMRInUse:                     "LMR in use",
	StateLMRFree:                      "LMR free",
	StatePZInUse:                      "PZ in use",
	StatePZFree:                       "PZ free",
	StateSRQOperational:               "SRQ operational",
	StateSRQError:                     "SRQ in error",
	StateSRQInUse:                     "SRQ in use",
	StateSRQShutdown:                  "SRQ shut down",
	PrivilegesRead:                    "local read",
	PrivilegesWrite:                   "local write",
	PrivilegesRDMARead:                "RDMA read",
	PrivilegesRDMAWrite:               "RDMA write",
	ProtectionRead:                    "local read",
	ProtectionWrite:                   "local write",
	ProtectionRDMARead:                "RDMA read",
	ProtectionRDMAWrite:               "RDMA write",
	AddressUnsupported:                "address unsupported",
	AddressUnreachable:                "address unreachable",
	AddressMalformed:                  "address malformed",
	NameNotRegistered:                 "name not registered",
	MajorNotFound:                     "major version not found",
	MinorNotFound:                     "minor version not found",
	ThreadSafetyNotFound:              "thread safety not found",
}

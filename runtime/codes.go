package runtime

import (
	"godat/hw"
	"godat/hw/event"
)

// Error is what calls return: DAT's return code, and in words what was wrong. It
// answers to DAT_RETURN.
//
// errors.Is matches it with the Err variable of its type; with an Error that has its
// Type and Sub; and with the standard library's error of the same meaning
// (os.ErrDeadlineExceeded, context.Canceled, net.ErrClosed, errors.ErrUnsupported):
//
//	errors.Is(err, dat.ErrInvalidState)
//	errors.Is(err, &dat.Error{Type: dat.TypeInvalidState, Sub: dat.SubStateEVDWaiter})
//
// The outcome of an operation or of a connection is not an Error: see [StatusError],
// [EventError] and [Cause].
type Error = hw.Error

// StatusError is the [Status] of a completion that failed, as an error:
//
//	errors.Is(ev.Err(), dat.StatusError(dat.StatusFlushed))
type StatusError = hw.StatusError

// EventError is the number of an event that tells of a failure, as an error:
//
//	errors.Is(ev.Err(), dat.EventError(dat.PeerRejected))
type EventError = event.Error

// Cause says why a connection, or the attempt at one, ended: in the words of the layer
// that found the reason, with the addresses of both ends. errors.As finds it in the
// error of the event that tells of the end, and in the error of a completion that the
// end flushed; [event.Event.Cause] gives it, too.
type Cause = hw.Cause

// Layer is the part of the stack in whose words a [Cause] speaks.
type Layer = hw.Layer

// The layers.
const (
	LayerDAT   Layer = hw.LayerDAT   // the endpoint; DAT's statuses
	LayerTCP   Layer = hw.LayerTCP   // the socket, with look-up and routing
	LayerMPA   Layer = hw.LayerMPA   // iWARP's framing and its start-up
	LayerDDP   Layer = hw.LayerDDP   // iWARP's placement of data
	LayerRDMAP Layer = hw.LayerRDMAP // iWARP's operations
	LayerVerbs Layer = hw.LayerVerbs // a verbs device and its connection manager
)

// Side is an end of a connection, seen from this one.
type Side = hw.Side

// The sides.
const (
	SideLocal Side = hw.SideLocal // this end
	SidePeer  Side = hw.SidePeer  // the other end
)

// One error for each type of return code, for errors.Is.
var (
	ErrAbort                     = hw.ErrAbort
	ErrConnQualInUse             = hw.ErrConnQualInUse
	ErrInsufficientResources     = hw.ErrInsufficientResources
	ErrInternal                  = hw.ErrInternal
	ErrInvalidHandle             = hw.ErrInvalidHandle
	ErrInvalidParameter          = hw.ErrInvalidParameter
	ErrInvalidState              = hw.ErrInvalidState
	ErrLength                    = hw.ErrLength
	ErrModelNotSupported         = hw.ErrModelNotSupported
	ErrProviderNotFound          = hw.ErrProviderNotFound
	ErrPrivileges                = hw.ErrPrivileges
	ErrProtection                = hw.ErrProtection
	ErrQueueEmpty                = hw.ErrQueueEmpty
	ErrQueueFull                 = hw.ErrQueueFull
	ErrTimeout                   = hw.ErrTimeout
	ErrProviderAlreadyRegistered = hw.ErrProviderAlreadyRegistered
	ErrProviderInUse             = hw.ErrProviderInUse
	ErrInvalidAddress            = hw.ErrInvalidAddress
	ErrInterrupted               = hw.ErrInterrupted
	ErrConnQualUnavailable       = hw.ErrConnQualUnavailable
	ErrReservedLMR               = hw.ErrReservedLMR
	ErrPortInUse                 = hw.ErrPortInUse
	ErrCommNotSupported          = hw.ErrCommNotSupported
	ErrNotImplemented            = hw.ErrNotImplemented
)

// ErrorType is the type of a return code: DAT_RETURN_TYPE, with its numbers. Each type
// has an Err variable.
type ErrorType = hw.Type

// The types of return codes.
const (
	TypeSuccess                   ErrorType = hw.Success
	TypeAbort                     ErrorType = hw.Abort                 // the object was closed meanwhile
	TypeConnQualInUse             ErrorType = hw.ConnQualInUse         // the address or qualifier has a listener already
	TypeInsufficientResources     ErrorType = hw.InsufficientResources // no more room, or memory; Sub says what ran out
	TypeInternalError             ErrorType = hw.InternalError         // something failed inside the library, the provider or the device
	TypeInvalidHandle             ErrorType = hw.InvalidHandle         // nil, closed, or of another adapter; Sub says which handle
	TypeInvalidParameter          ErrorType = hw.InvalidParameter      // Text says which parameter, and why
	TypeInvalidState              ErrorType = hw.InvalidState          // not in this state, which Sub names
	TypeLengthError               ErrorType = hw.LengthError           // too long, or of no length
	TypeModelNotSupported         ErrorType = hw.ModelNotSupported     // the provider does not have that
	TypeProviderNotFound          ErrorType = hw.ProviderNotFound      // Sub says what no provider has
	TypePrivilegesViolation       ErrorType = hw.PrivilegesViolation   // a region's privileges forbid it
	TypeProtectionViolation       ErrorType = hw.ProtectionViolation   // a region's zone or bounds forbid it
	TypeQueueEmpty                ErrorType = hw.QueueEmpty
	TypeQueueFull                 ErrorType = hw.QueueFull
	TypeTimeoutExpired            ErrorType = hw.TimeoutExpired // a context's deadline
	TypeProviderAlreadyRegistered ErrorType = hw.ProviderAlreadyRegistered
	TypeProviderInUse             ErrorType = hw.ProviderInUse   // an adapter of it is open
	TypeInvalidAddress            ErrorType = hw.InvalidAddress  // Sub says why
	TypeInterruptedCall           ErrorType = hw.InterruptedCall // a context was canceled
	TypeConnQualUnavailable       ErrorType = hw.ConnQualUnavailable
	TypeReservedLMR               ErrorType = hw.ReservedLMR
	TypePortInUse                 ErrorType = hw.PortInUse
	TypeCommNotSupported          ErrorType = hw.CommNotSupported
	TypeExtensionBase             ErrorType = hw.ExtensionBase // extensions' types begin here
	TypeNotImplemented            ErrorType = hw.NotImplemented
)

// ErrorSubtype says more of a return code: DAT_RETURN_SUBTYPE, with its numbers.
type ErrorSubtype = hw.Subtype

// The subtypes of return codes.
const (
	NoSubtype      ErrorSubtype = hw.NoSubtype
	SubInterrupted ErrorSubtype = hw.SubInterrupted

	// Of TypeInsufficientResources: what ran out.
	SubResourceMemory           ErrorSubtype = hw.ResourceMemory
	SubResourceDevice           ErrorSubtype = hw.ResourceDevice
	SubResourceTEP              ErrorSubtype = hw.ResourceTEP
	SubResourceTEVD             ErrorSubtype = hw.ResourceTEVD
	SubResourceProtectionDomain ErrorSubtype = hw.ResourceProtectionDomain
	SubResourceMemoryRegion     ErrorSubtype = hw.ResourceMemoryRegion
	SubResourceErrorHandler     ErrorSubtype = hw.ResourceErrorHandler
	SubResourceCredits          ErrorSubtype = hw.ResourceCredits
	SubResourceSRQ              ErrorSubtype = hw.ResourceSRQ

	// Of TypeInvalidHandle: what kind of object it is, or which argument of the C call.
	SubHandleIA         ErrorSubtype = hw.HandleIA
	SubHandleEP         ErrorSubtype = hw.HandleEP
	SubHandleLMR        ErrorSubtype = hw.HandleLMR
	SubHandleRMR        ErrorSubtype = hw.HandleRMR
	SubHandlePZ         ErrorSubtype = hw.HandlePZ
	SubHandlePSP        ErrorSubtype = hw.HandlePSP
	SubHandleRSP        ErrorSubtype = hw.HandleRSP
	SubHandleCR         ErrorSubtype = hw.HandleCR
	SubHandleCNO        ErrorSubtype = hw.HandleCNO
	SubHandleEVDCR      ErrorSubtype = hw.HandleEVDCR
	SubHandleEVDRequest ErrorSubtype = hw.HandleEVDRequest
	SubHandleEVDRecv    ErrorSubtype = hw.HandleEVDRecv
	SubHandleEVDConn    ErrorSubtype = hw.HandleEVDConn
	SubHandleEVDAsync   ErrorSubtype = hw.HandleEVDAsync
	SubHandleSRQ        ErrorSubtype = hw.HandleSRQ
	SubHandleCSP        ErrorSubtype = hw.HandleCSP
	SubHandle1          ErrorSubtype = hw.Handle1
	SubHandle2          ErrorSubtype = hw.Handle2
	SubHandle3          ErrorSubtype = hw.Handle3
	SubHandle4          ErrorSubtype = hw.Handle4
	SubHandle5          ErrorSubtype = hw.Handle5
	SubHandle6          ErrorSubtype = hw.Handle6
	SubHandle7          ErrorSubtype = hw.Handle7
	SubHandle8          ErrorSubtype = hw.Handle8
	SubHandle9          ErrorSubtype = hw.Handle9
	SubHandle10         ErrorSubtype = hw.Handle10

	// Of TypeInvalidParameter: which argument of the C call it is.
	SubArg1  ErrorSubtype = hw.Arg1
	SubArg2  ErrorSubtype = hw.Arg2
	SubArg3  ErrorSubtype = hw.Arg3
	SubArg4  ErrorSubtype = hw.Arg4
	SubArg5  ErrorSubtype = hw.Arg5
	SubArg6  ErrorSubtype = hw.Arg6
	SubArg7  ErrorSubtype = hw.Arg7
	SubArg8  ErrorSubtype = hw.Arg8
	SubArg9  ErrorSubtype = hw.Arg9
	SubArg10 ErrorSubtype = hw.Arg10

	// Of TypeInvalidState: the state of an endpoint, or what the endpoint lacks.
	SubStateEPUnconnected                ErrorSubtype = hw.StateEPUnconnected
	SubStateEPActiveConnectionPending    ErrorSubtype = hw.StateEPActiveConnectionPending
	SubStateEPPassiveConnectionPending   ErrorSubtype = hw.StateEPPassiveConnectionPending
	SubStateEPTentativeConnectionPending ErrorSubtype = hw.StateEPTentativeConnectionPending
	SubStateEPConnected                  ErrorSubtype = hw.StateEPConnected
	SubStateEPDisconnected               ErrorSubtype = hw.StateEPDisconnected
	SubStateEPReserved                   ErrorSubtype = hw.StateEPReserved
	SubStateEPCompletionPending          ErrorSubtype = hw.StateEPCompletionPending
	SubStateEPDisconnectPending          ErrorSubtype = hw.StateEPDisconnectPending
	SubStateEPProviderControl            ErrorSubtype = hw.StateEPProviderControl
	SubStateEPNotReady                   ErrorSubtype = hw.StateEPNotReady
	SubStateEPRecvWatermark              ErrorSubtype = hw.StateEPRecvWatermark
	SubStateEPPZ                         ErrorSubtype = hw.StateEPPZ
	SubStateEPEVDRequest                 ErrorSubtype = hw.StateEPEVDRequest
	SubStateEPEVDRecv                    ErrorSubtype = hw.StateEPEVDRecv
	SubStateEPEVDConnect                 ErrorSubtype = hw.StateEPEVDConnect
	SubStateEPUnconfigured               ErrorSubtype = hw.StateEPUnconfigured
	SubStateEPUnconfiguredReserved       ErrorSubtype = hw.StateEPUnconfiguredReserved
	SubStateEPUnconfiguredPassive        ErrorSubtype = hw.StateEPUnconfiguredPassive
	SubStateEPUnconfiguredTentative      ErrorSubtype = hw.StateEPUnconfiguredTentative

	// Of TypeInvalidState: the state of other objects.
	SubStateCNOInUse           ErrorSubtype = hw.StateCNOInUse
	SubStateCNODead            ErrorSubtype = hw.StateCNODead
	SubStateEVDOpen            ErrorSubtype = hw.StateEVDOpen
	SubStateEVDEnabled         ErrorSubtype = hw.StateEVDEnabled
	SubStateEVDDisabled        ErrorSubtype = hw.StateEVDDisabled
	SubStateEVDWaitable        ErrorSubtype = hw.StateEVDWaitable
	SubStateEVDUnwaitable      ErrorSubtype = hw.StateEVDUnwaitable
	SubStateEVDInUse           ErrorSubtype = hw.StateEVDInUse
	SubStateEVDConfigNotify    ErrorSubtype = hw.StateEVDConfigNotify
	SubStateEVDConfigSolicited ErrorSubtype = hw.StateEVDConfigSolicited
	SubStateEVDConfigThreshold ErrorSubtype = hw.StateEVDConfigThreshold
	SubStateEVDWaiter          ErrorSubtype = hw.StateEVDWaiter
	SubStateEVDAsync           ErrorSubtype = hw.StateEVDAsync
	SubStateIAInUse            ErrorSubtype = hw.StateIAInUse
	SubStateLMRInUse           ErrorSubtype = hw.StateLMRInUse
	SubStateLMRFree            ErrorSubtype = hw.StateLMRFree
	SubStatePZInUse            ErrorSubtype = hw.StatePZInUse
	SubStatePZFree             ErrorSubtype = hw.StatePZFree
	SubStateSRQOperational     ErrorSubtype = hw.StateSRQOperational
	SubStateSRQError           ErrorSubtype = hw.StateSRQError
	SubStateSRQInUse           ErrorSubtype = hw.StateSRQInUse
	SubStateSRQShutdown        ErrorSubtype = hw.StateSRQShutdown

	// Of TypePrivilegesViolation and TypeProtectionViolation: the access that is
	// forbidden.
	SubPrivilegesRead      ErrorSubtype = hw.PrivilegesRead
	SubPrivilegesWrite     ErrorSubtype = hw.PrivilegesWrite
	SubPrivilegesRDMARead  ErrorSubtype = hw.PrivilegesRDMARead
	SubPrivilegesRDMAWrite ErrorSubtype = hw.PrivilegesRDMAWrite
	SubProtectionRead      ErrorSubtype = hw.ProtectionRead
	SubProtectionWrite     ErrorSubtype = hw.ProtectionWrite
	SubProtectionRDMARead  ErrorSubtype = hw.ProtectionRDMARead
	SubProtectionRDMAWrite ErrorSubtype = hw.ProtectionRDMAWrite

	// Of TypeInvalidAddress.
	SubAddressUnsupported ErrorSubtype = hw.AddressUnsupported
	SubAddressUnreachable ErrorSubtype = hw.AddressUnreachable
	SubAddressMalformed   ErrorSubtype = hw.AddressMalformed

	// Of TypeProviderNotFound: what no provider has.
	SubNameNotRegistered    ErrorSubtype = hw.NameNotRegistered
	SubMajorNotFound        ErrorSubtype = hw.MajorNotFound
	SubMinorNotFound        ErrorSubtype = hw.MinorNotFound
	SubThreadSafetyNotFound ErrorSubtype = hw.ThreadSafetyNotFound
)

// Strerror says in words what a DAT_RETURN of the C library means: its type, and its
// subtype, empty where there is none. It answers to dat_strerror.
func Strerror(code uint32) (major, minor string) { return hw.Strerror(code) }

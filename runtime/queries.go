package runtime

import (
	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/mem"
)

// EndpointState is an endpoint's state: DAT_EP_STATE, with its numbers.
type EndpointState = ep.State

// The states of an endpoint.
const (
	StateUnconnected                EndpointState = ep.Unconnected
	StateReserved                   EndpointState = ep.Reserved                   // it waits for the request of its reserved service point
	StatePassiveConnectionPending   EndpointState = ep.PassiveConnectionPending   // the request of its reserved service point waits for an answer
	StateActiveConnectionPending    EndpointState = ep.ActiveConnectionPending    // connecting
	StateTentativeConnectionPending EndpointState = ep.TentativeConnectionPending // a service point made it for a request
	StateConnected                  EndpointState = ep.Connected
	StateDisconnectPending          EndpointState = ep.DisconnectPending // a graceful disconnect is under way
	StateDisconnected               EndpointState = ep.Disconnected      // until Reset
	StateCompletionPending          EndpointState = ep.CompletionPending // accepted, and not connected yet
)

// EndpointStatus is an endpoint's state and whether it has something outstanding;
// [ep.Endpoint.Status] gives it.
type EndpointStatus = ep.Status

// EndpointParam describes an endpoint, for [ep.Endpoint.Query] and
// [ep.Endpoint.Modify]: DAT_EP_PARAM.
type EndpointParam = ep.Param

// EndpointField is a mask of fields of [EndpointParam]: DAT_EP_PARAM_MASK, with its
// numbers.
type EndpointField = ep.Field

// The fields of an endpoint, by what they are called in EndpointParam.
const (
	EndpointFieldIA              EndpointField = ep.FieldIA              // IA
	EndpointFieldState           EndpointField = ep.FieldState           // State
	EndpointFieldComm            EndpointField = ep.FieldComm            // Comm
	EndpointFieldLocalAddr       EndpointField = ep.FieldLocalAddr       // LocalAddr
	EndpointFieldLocalQual       EndpointField = ep.FieldLocalQual       // LocalQual
	EndpointFieldRemoteAddr      EndpointField = ep.FieldRemoteAddr      // RemoteAddr
	EndpointFieldRemoteQual      EndpointField = ep.FieldRemoteQual      // RemoteQual
	EndpointFieldPZ              EndpointField = ep.FieldPZ              // PZ
	EndpointFieldRecvEVD         EndpointField = ep.FieldRecvEVD         // Recv
	EndpointFieldRequestEVD      EndpointField = ep.FieldRequestEVD      // Request
	EndpointFieldConnectEVD      EndpointField = ep.FieldConnectEVD      // Conn
	EndpointFieldSRQ             EndpointField = ep.FieldSRQ             // SRQ
	EndpointFieldServiceType     EndpointField = ep.FieldServiceType     // Attr.ServiceType
	EndpointFieldMaxMessageSize  EndpointField = ep.FieldMaxMessageSize  // Attr.MaxMessageSize
	EndpointFieldMaxRDMASize     EndpointField = ep.FieldMaxRDMASize     // Attr.MaxRDMASize
	EndpointFieldQoS             EndpointField = ep.FieldQoS             // Attr.QoS
	EndpointFieldRecvFlags       EndpointField = ep.FieldRecvFlags       // Attr.RecvFlags
	EndpointFieldRequestFlags    EndpointField = ep.FieldRequestFlags    // Attr.RequestFlags
	EndpointFieldMaxRecvDTOs     EndpointField = ep.FieldMaxRecvDTOs     // Attr.MaxRecvDTOs
	EndpointFieldMaxRequestDTOs  EndpointField = ep.FieldMaxRequestDTOs  // Attr.MaxRequestDTOs
	EndpointFieldMaxRecvIOV      EndpointField = ep.FieldMaxRecvIOV      // Attr.MaxRecvIOV
	EndpointFieldMaxRequestIOV   EndpointField = ep.FieldMaxRequestIOV   // Attr.MaxRequestIOV
	EndpointFieldMaxReadIn       EndpointField = ep.FieldMaxReadIn       // Attr.MaxReadIn
	EndpointFieldMaxReadOut      EndpointField = ep.FieldMaxReadOut      // Attr.MaxReadOut
	EndpointFieldSoftHighWater   EndpointField = ep.FieldSoftHighWater   // Attr.SoftHighWatermark
	EndpointFieldMaxReadIOV      EndpointField = ep.FieldMaxReadIOV      // Attr.MaxReadIOV
	EndpointFieldMaxWriteIOV     EndpointField = ep.FieldMaxWriteIOV     // Attr.MaxWriteIOV
	EndpointFieldTransportValues EndpointField = ep.FieldTransportValues // Attr.ReceiverNotReady
	EndpointFieldTransportAttr   EndpointField = ep.FieldTransportAttr   // Attr.ReceiverNotReady
	EndpointFieldProviderValues  EndpointField = ep.FieldProviderValues  // Attr.DrainTimeout
	EndpointFieldProviderAttr    EndpointField = ep.FieldProviderAttr    // Attr.DrainTimeout
	EndpointFieldAttr            EndpointField = ep.FieldAttr            // all of Attr
	EndpointFieldAll             EndpointField = ep.FieldAll
)

// PSPParam describes a public service point: DAT_PSP_PARAM.
type PSPParam = ep.PSPParam

// PSPField is a mask of fields of [PSPParam]: DAT_PSP_PARAM_MASK, with its numbers.
type PSPField = ep.PSPField

// The fields of a public service point.
const (
	PSPFieldIA    PSPField = ep.PSPFieldIA    // IA
	PSPFieldQual  PSPField = ep.PSPFieldQual  // Qual
	PSPFieldEVD   PSPField = ep.PSPFieldEVD   // Dispatcher
	PSPFieldFlags PSPField = ep.PSPFieldFlags // Flags
	PSPFieldAll   PSPField = ep.PSPFieldAll
)

// RSPParam describes a reserved service point: DAT_RSP_PARAM.
type RSPParam = ep.RSPParam

// RSPField is a mask of fields of [RSPParam]: DAT_RSP_PARAM_MASK, with its numbers.
type RSPField = ep.RSPField

// The fields of a reserved service point.
const (
	RSPFieldIA       RSPField = ep.RSPFieldIA       // IA
	RSPFieldQual     RSPField = ep.RSPFieldQual     // Qual
	RSPFieldEVD      RSPField = ep.RSPFieldEVD      // Dispatcher
	RSPFieldEndpoint RSPField = ep.RSPFieldEndpoint // Endpoint
	RSPFieldAll      RSPField = ep.RSPFieldAll
)

// CSPParam describes a common service point: DAT_CSP_PARAM.
type CSPParam = ep.CSPParam

// CSPField is a mask of fields of [CSPParam]: DAT_CSP_PARAM_MASK, with its numbers.
type CSPField = ep.CSPField

// The fields of a common service point.
const (
	CSPFieldIA   CSPField = ep.CSPFieldIA   // IA
	CSPFieldComm CSPField = ep.CSPFieldComm // Comm
	CSPFieldAddr CSPField = ep.CSPFieldAddr // Addr
	CSPFieldEVD  CSPField = ep.CSPFieldEVD  // Dispatcher
	CSPFieldAll  CSPField = ep.CSPFieldAll
)

// CRParam describes a connection request, its peer and the private data: DAT_CR_PARAM.
// [ep.CR.Query] fills all of it.
type CRParam = ep.CRParam

// SRQState is a shared receive queue's state: DAT_SRQ_STATE, with its numbers.
type SRQState = ep.SRQState

// The states of a shared receive queue.
const (
	SRQError       SRQState = ep.SRQError // the device put it into the error state; it can be closed
	SRQOperational SRQState = ep.SRQOperational
)

// SRQParam describes a shared receive queue: DAT_SRQ_PARAM.
type SRQParam = ep.SRQParam

// SRQField is a mask of fields of [SRQParam]: DAT_SRQ_PARAM_MASK, with its numbers.
type SRQField = ep.SRQField

// The fields of a shared receive queue.
const (
	SRQFieldIA           SRQField = ep.SRQFieldIA
	SRQFieldState        SRQField = ep.SRQFieldState
	SRQFieldPZ           SRQField = ep.SRQFieldPZ
	SRQFieldMaxRecvDTOs  SRQField = ep.SRQFieldMaxRecvDTOs
	SRQFieldMaxRecvIOV   SRQField = ep.SRQFieldMaxRecvIOV
	SRQFieldLowWatermark SRQField = ep.SRQFieldLowWatermark
	SRQFieldAvailable    SRQField = ep.SRQFieldAvailable
	SRQFieldOutstanding  SRQField = ep.SRQFieldOutstanding
	SRQFieldAll          SRQField = ep.SRQFieldAll
)

// DispatcherState is a dispatcher's state, three states in one mask: DAT_EVD_STATE,
// with its numbers.
type DispatcherState = evd.State

// The states of a dispatcher.
const (
	DispatcherEnabled    DispatcherState = evd.StateEnabled // events trigger the CNO
	DispatcherDisabled   DispatcherState = evd.StateDisabled
	DispatcherWaitable   DispatcherState = evd.StateWaitable
	DispatcherUnwaitable DispatcherState = evd.StateUnwaitable

	// What wakes a waiter: a field of two bits, in which Threshold is a value of its
	// own and not Notify and Solicited together.
	DispatcherConfigNotify    DispatcherState = evd.ConfigNotify    // every event that is not UNSIGNALLED
	DispatcherConfigSolicited DispatcherState = evd.ConfigSolicited // solicited receives, and errors
	DispatcherConfigThreshold DispatcherState = evd.ConfigThreshold // its threshold
)

// DispatcherParam describes a dispatcher: DAT_EVD_PARAM.
type DispatcherParam = evd.Param

// DispatcherField is a mask of fields of [DispatcherParam]: DAT_EVD_PARAM_MASK, with
// its numbers.
type DispatcherField = evd.Field

// The fields of a dispatcher.
const (
	DispatcherFieldIA      DispatcherField = evd.FieldIA
	DispatcherFieldQLen    DispatcherField = evd.FieldQLen
	DispatcherFieldState   DispatcherField = evd.FieldState
	DispatcherFieldCNO     DispatcherField = evd.FieldCNO
	DispatcherFieldStreams DispatcherField = evd.FieldStreams
	DispatcherFieldAll     DispatcherField = evd.FieldAll
)

// CNOParam describes a CNO: DAT_CNO_PARAM.
type CNOParam = evd.CNOParam

// CNOField is a mask of fields of [CNOParam]: DAT_CNO_PARAM_MASK.
type CNOField = evd.CNOField

// The fields of a CNO.
const (
	CNOFieldIA        CNOField = evd.CNOFieldIA
	CNOFieldProxyType CNOField = evd.CNOFieldProxyType
	CNOFieldProxy     CNOField = evd.CNOFieldProxy // Agent or FD
	CNOFieldAll       CNOField = evd.CNOFieldAll
)

// ProxyType says what a CNO notifies beside its waiters: DAT_PROXY_TYPE.
type ProxyType = evd.ProxyType

// What a CNO notifies beside its waiters.
const (
	ProxyNone  ProxyType = evd.ProxyNone
	ProxyAgent ProxyType = evd.ProxyAgent
	ProxyFD    ProxyType = evd.ProxyFD
)

// PZParam describes a zone: DAT_PZ_PARAM.
type PZParam = mem.PZParam

// PZField is a mask of fields of [PZParam]: DAT_PZ_PARAM_MASK, with its numbers.
type PZField = mem.PZField

// The fields of a zone.
const (
	PZFieldIA  PZField = mem.PZFieldIA // IA
	PZFieldAll PZField = mem.PZFieldAll
)

// LMRParam describes a region: DAT_LMR_PARAM.
type LMRParam = mem.LMRParam

// LMRField is a mask of fields of [LMRParam]: DAT_LMR_PARAM_MASK, with its numbers.
type LMRField = mem.LMRField

// The fields of a region.
const (
	LMRFieldIA                LMRField = mem.LMRFieldIA                // IA
	LMRFieldMemType           LMRField = mem.LMRFieldMemType           // Type
	LMRFieldRegionDesc        LMRField = mem.LMRFieldRegionDesc        // Memory, From, Shared
	LMRFieldLength            LMRField = mem.LMRFieldLength            // Length
	LMRFieldPZ                LMRField = mem.LMRFieldPZ                // PZ
	LMRFieldPrivileges        LMRField = mem.LMRFieldPrivileges        // Privileges
	LMRFieldVAType            LMRField = mem.LMRFieldVAType            // ZeroBased
	LMRFieldContext           LMRField = mem.LMRFieldContext           // Context
	LMRFieldRemoteContext     LMRField = mem.LMRFieldRemoteContext     // RemoteContext
	LMRFieldRegisteredSize    LMRField = mem.LMRFieldRegisteredSize    // RegisteredSize
	LMRFieldRegisteredAddress LMRField = mem.LMRFieldRegisteredAddress // RegisteredAddress
	LMRFieldAll               LMRField = mem.LMRFieldAll
)

// RMRParam describes a window: DAT_RMR_PARAM.
type RMRParam = mem.RMRParam

// RMRField is a mask of fields of [RMRParam]: DAT_RMR_PARAM_MASK, with its numbers.
type RMRField = mem.RMRField

// The fields of a window.
const (
	RMRFieldIA            RMRField = mem.RMRFieldIA            // IA
	RMRFieldPZ            RMRField = mem.RMRFieldPZ            // PZ
	RMRFieldSegment       RMRField = mem.RMRFieldSegment       // Segment
	RMRFieldPrivileges    RMRField = mem.RMRFieldPrivileges    // Privileges
	RMRFieldRemoteContext RMRField = mem.RMRFieldRemoteContext // RemoteContext
	RMRFieldScope         RMRField = mem.RMRFieldScope         // Scope
	RMRFieldVAType        RMRField = mem.RMRFieldVAType        // ZeroBased
	RMRFieldAll           RMRField = mem.RMRFieldAll
)

// DeviceAttr is what a device can do, in the terms of providers; [IA.Attr] gives it.
type DeviceAttr = hw.Attr

// EndpointCounters say what has happened on an endpoint: DAT_EP_COUNTERS.
type EndpointCounters = ep.EndpointCounters

// DispatcherCounters say what has happened on a dispatcher: DAT_EVD_COUNTERS.
type DispatcherCounters = evd.Counters

// ConnectionCounters say what has happened on the endpoints and service points of an
// adapter: a part of [Counters].
type ConnectionCounters = ep.Counters

// MemoryCounters say how much memory an adapter has registered and freed: a part of
// [Counters].
type MemoryCounters = mem.Counters

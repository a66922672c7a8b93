package runtime

import (
	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/mem"
)

// The objects, under the names that DAT gives them.
type (
	// PZ is a protection zone; see [mem.PZ].
	PZ = mem.PZ
	// LMR is a local memory region; see [mem.LMR].
	LMR = mem.LMR
	// RMR is a remote memory region, a window; see [mem.RMR].
	RMR = mem.RMR
	// Segment is a piece of a region; see [mem.Segment].
	Segment = mem.Segment
	// RemoteSegment is a piece of a peer's region; see [mem.RemoteSegment].
	RemoteSegment = mem.RemoteSegment
	// Dispatcher is an event dispatcher (EVD); see [evd.Dispatcher].
	Dispatcher = evd.Dispatcher
	// CNO is one place to wait for many dispatchers; see [evd.CNO].
	CNO = evd.CNO
	// Route sends the events of some cookies to a channel of its own; see [evd.Route].
	Route = evd.Route
	// OneShot takes the completion of one request; see [evd.OneShot].
	OneShot = evd.OneShot
	// Batch is a batch of events; see [evd.Batch].
	Batch = evd.Batch
	// Event is one thing that happened; see [evd.Event].
	Event = evd.Event
	// Endpoint is one end of a connection (EP); see [ep.Endpoint].
	Endpoint = ep.Endpoint
	// SRQ is a shared receive queue; see [ep.SRQ].
	SRQ = ep.SRQ
	// PSP is a public service point, which listens; see [ep.PSP].
	PSP = ep.PSP
	// RSP is a reserved service point, which takes one request; see [ep.RSP].
	RSP = ep.RSP
	// CSP is a common service point, which listens at an address; see [ep.CSP].
	CSP = ep.CSP
	// CR is a connection request; see [ep.CR].
	CR = ep.CR
)

// What the objects are made of, and what they tell of themselves.
type (
	// DispatcherConfig configures a dispatcher; see [evd.Config].
	DispatcherConfig = evd.Config
	// DispatcherMode says how a dispatcher delivers; see [evd.Mode].
	DispatcherMode = evd.Mode
	// DispatcherParam describes a dispatcher; see [evd.Param].
	DispatcherParam = evd.Param
	// CNOConfig configures a CNO; see [evd.CNOConfig].
	CNOConfig = evd.CNOConfig
	// CNOParam describes a CNO; see [evd.CNOParam].
	CNOParam = evd.CNOParam
	// Agent is what a CNO calls when it is triggered; see [evd.Agent].
	Agent = evd.Agent
	// EndpointConfig configures an endpoint; see [ep.Config].
	EndpointConfig = ep.Config
	// EndpointAttr are an endpoint's attributes; see [ep.Attr].
	EndpointAttr = ep.Attr
	// EndpointParam describes an endpoint; see [ep.Param].
	EndpointParam = ep.Param
	// EndpointState is an endpoint's state; see [ep.State].
	EndpointState = ep.State
	// EndpointStatus is a snapshot of an endpoint; see [ep.Status].
	EndpointStatus = ep.Status
	// DispatcherCounters say what has happened on a dispatcher; see [evd.Counters].
	DispatcherCounters = evd.Counters
	// EndpointCounters say what has happened on an endpoint; see [ep.EndpointCounters].
	EndpointCounters = ep.EndpointCounters
	// ConnectConfig says where to connect; see [ep.ConnectConfig].
	ConnectConfig = ep.ConnectConfig
	// ConnectFlags say what a connection is to be like; see [ep.ConnectFlags].
	ConnectFlags = ep.ConnectFlags
	// ServiceType is the kind of connection; see [ep.ServiceType].
	ServiceType = ep.ServiceType
	// AddressHandle names who gets a datagram; see [ep.AddressHandle].
	AddressHandle = ep.AddressHandle
	// CloseFlags say how a connection is given up; see [ep.CloseFlags].
	CloseFlags = ep.CloseFlags
	// PSPConfig says where a service point listens; see [ep.PSPConfig].
	PSPConfig = ep.PSPConfig
	// PSPFlags say who makes a service point's endpoints; see [ep.PSPFlags].
	PSPFlags = ep.PSPFlags
	// PSPParam describes a public service point; see [ep.PSPParam].
	PSPParam = ep.PSPParam
	// RSPConfig says where a reserved service point listens; see [ep.RSPConfig].
	RSPConfig = ep.RSPConfig
	// RSPParam describes a reserved service point; see [ep.RSPParam].
	RSPParam = ep.RSPParam
	// CSPConfig says where a common service point listens; see [ep.CSPConfig].
	CSPConfig = ep.CSPConfig
	// CSPParam describes a common service point; see [ep.CSPParam].
	CSPParam = ep.CSPParam
	// Comm is a communication domain; see [ep.Comm].
	Comm = ep.Comm
	// CRParam describes a connection request; see [ep.CRParam].
	CRParam = ep.CRParam
	// SRQAttr are a shared receive queue's attributes; see [ep.SRQAttr].
	SRQAttr = ep.SRQAttr
	// SRQParam describes a shared receive queue; see [ep.SRQParam].
	SRQParam = ep.SRQParam
	// SRQState is a shared receive queue's state; see [ep.SRQState].
	SRQState = ep.SRQState
	// SRQField selects what SRQ.Query fills; see [ep.SRQField].
	SRQField = ep.SRQField
	// DTO is a request of a batch of posts; see [ep.DTO].
	DTO = ep.DTO
	// SharedID names memory that regions share; see [mem.SharedID].
	SharedID = mem.SharedID
	// LMRParam describes a region; see [mem.LMRParam].
	LMRParam = mem.LMRParam
	// RMRParam describes a window; see [mem.RMRParam].
	RMRParam = mem.RMRParam
	// Binding is what a window is bound to; see [mem.Binding].
	Binding = mem.Binding
	// PZParam describes a zone; see [mem.PZParam].
	PZParam = mem.PZParam
	// MemoryOption modifies how a region gets its memory; see [mem.Option].
	MemoryOption = mem.Option
)

// The words of requests, completions and events.
type (
	// Privileges say what may be done with memory; see [hw.Privileges].
	Privileges = hw.Privileges
	// Flags modify a post; see [hw.Flags].
	Flags = hw.Flags
	// Op is an operation; see [hw.Op].
	Op = hw.Op
	// Status is how an operation ended; see [hw.Status].
	Status = hw.Status
	// StatusError is a Status as an error; see [hw.StatusError].
	StatusError = hw.StatusError
	// EventNumber says what an event tells of; see [evd.Number].
	EventNumber = evd.Number
	// EventError is an event number as an error; see [evd.Error].
	EventError = evd.Error
	// EventFlags say more of an event; see [evd.EventFlags].
	EventFlags = evd.EventFlags
	// Streams are the kinds of events a dispatcher takes; see [evd.Streams].
	Streams = evd.Streams
	// Reason says why an asynchronous error came; see [evd.Reason].
	Reason = evd.Reason
	// Cause says why a connection, or the attempt at one, ended; see [hw.Cause].
	Cause = hw.Cause
	// Layer is the part of the stack in whose words a Cause speaks; see [hw.Layer].
	Layer = hw.Layer
	// Side is an end of a connection; see [hw.Side].
	Side = hw.Side
)

// The layers of a Cause, and the sides that find it.
const (
	LayerDAT   = hw.LayerDAT
	LayerTCP   = hw.LayerTCP
	LayerMPA   = hw.LayerMPA
	LayerDDP   = hw.LayerDDP
	LayerRDMAP = hw.LayerRDMAP
	LayerVerbs = hw.LayerVerbs

	SideLocal = hw.SideLocal
	SidePeer  = hw.SidePeer
)

// EndpointOf is the endpoint that an event is about, or nil.
func EndpointOf(ev Event) *Endpoint { return ep.Of(ev) }

// RMROf is the window that the completion of a bind is about, or nil.
func RMROf(ev Event) *RMR { return ep.RMROf(ev) }

// SRQOf is the shared receive queue that an asynchronous error is about, or nil.
func SRQOf(ev Event) *SRQ { return ep.SRQOf(ev) }

// RequestOf is the connection request that an event tells of, or nil.
func RequestOf(ev Event) *CR { return ep.RequestOf(ev) }

// ParseRemoteSegment takes a peer's segment from the first [RemoteSegmentSize]
// bytes of b; see [mem.ParseRemoteSegment].
func ParseRemoteSegment(b []byte) (RemoteSegment, error) { return mem.ParseRemoteSegment(b) }

// RemoteSegmentSize is how many bytes an encoded RemoteSegment has.
const RemoteSegmentSize = mem.RemoteSegmentSize

// WithHugePages asks [PZ.Alloc] for 2 MiB pages; see [mem.WithHugePages].
func WithHugePages() MemoryOption { return mem.WithHugePages() }

// WithAlignment asks [PZ.Alloc] for an address that is a multiple of n; see
// [mem.WithAlignment].
func WithAlignment(n int) MemoryOption { return mem.WithAlignment(n) }

// WithUnmapOnFree has [LMR.Free] give the address range back at once; see
// [mem.WithUnmapOnFree].
func WithUnmapOnFree() MemoryOption { return mem.WithUnmapOnFree() }

package runtime

import (
	"godat/ep"
	"godat/evd"
	"godat/mem"
)

// PZ is a protection zone: memory regions and endpoints of one zone may be used
// together, and no peer reaches the memory of another zone. It answers to
// DAT_PZ_HANDLE.
//
// [IA.NewPZ] makes one; it lives until Close, which fails while something is in it,
// or until the adapter closes. Any goroutine may call its methods. Alloc, Register,
// RegisterLMR and RegisterShared make regions, NewRMR a window, NewBufferPool a pool
// of buffers. All methods: go doc godat/mem PZ.
type PZ = mem.PZ

// LMR is a local memory region: memory that the device may use. It answers to
// DAT_LMR_HANDLE.
//
// [mem.PZ.Alloc] makes one of memory outside the Go heap, [mem.PZ.Register] of the
// caller's. Bytes is the memory; Segment names a part of it to a post, Remote to a
// peer. Once Free has returned, no byte of the memory changes. Any goroutine may call
// its methods. All of them: go doc godat/mem LMR.
type LMR = mem.LMR

// RMR is a memory window: it lets a peer reach a part of a region for a while,
// without another registration. It answers to DAT_RMR_HANDLE.
//
// [mem.PZ.NewRMR] makes one for the endpoints of a zone, [ep.Endpoint.NewRMR] for one
// endpoint. [ep.Endpoint.PostBind] binds it to memory and unbinds it; Free ends it. Any
// goroutine may call its methods. All of them: go doc godat/mem RMR.
type RMR = mem.RMR

// Dispatcher is an event dispatcher, where events wait for the program. It answers
// to DAT_EVD_HANDLE.
//
// [IA.NewDispatcher] makes one, and [DispatcherConfig] says how it delivers: by Dequeue
// and Wait, the channel C, the channel Batches, or a callback. Route and NewOneShot
// give the events of some requests channels of their own. It outlives the endpoints
// that it serves: Close fails while an object sends its events there. Any goroutine may
// call its methods. All of them: go doc godat/evd Dispatcher; the rules that hold for
// every way of delivery: go doc godat/evd.
type Dispatcher = evd.Dispatcher

// DispatcherConfig says how a dispatcher delivers and how much it holds: the
// arguments of dat_evd_create. QLen and a Mode are enough to begin with. Its fields:
// go doc godat/evd Config.
type DispatcherConfig = evd.Config

// Route is a channel of its own, with places of its own, for the events of some
// cookies: by it a worker gets the completions of its requests and no others.
//
// [evd.Dispatcher.Route] makes one; C is its channel. Close ends it, and fails while
// requests that it serves are outstanding. All methods: go doc godat/evd Route.
type Route = evd.Route

// OneShot takes the completion of one request, for a goroutine that waits for no other.
// [evd.Dispatcher.NewOneShot] makes one, and a [DTO] names it. Wait, or the channel C,
// gives the event; then another DTO may name it, until Release returns it to the
// dispatcher. All methods: go doc godat/evd OneShot.
type OneShot = evd.OneShot

// Batch is a run of events, in order, that a dispatcher of [ModeBatch] sends on its
// channel Batches. The receiver reads Events, and then calls Release once.
type Batch = evd.Batch

// CNO is a consumer notification object: one place to wait for any number of
// dispatchers of [ModeQueue]. It answers to DAT_CNO_HANDLE.
//
// [IA.NewCNO] makes one; [DispatcherConfig] or ModifyCNO says which dispatchers trigger
// it. Wait returns a dispatcher that triggered it. A CNO may call an [Agent] instead,
// and FD is for a foreign poll loop. Any goroutine may call its methods. All of them:
// go doc godat/evd CNO.
type CNO = evd.CNO

// CNOConfig says how a CNO notifies the program: the arguments of dat_cno_create and
// dat_cno_fd_create. The zero value makes a CNO to Wait on. Its fields: go doc
// godat/evd CNOConfig.
type CNOConfig = evd.CNOConfig

// Agent is what a CNO calls when it is triggered: DAT_OS_WAIT_PROXY_AGENT.
type Agent = evd.Agent

// Endpoint is one end of a connection: the place to post sends, receives, RDMA and
// atomics. It answers to DAT_EP_HANDLE.
//
// [IA.NewEndpoint] makes one, UNCONNECTED. [ep.Endpoint.Connect] and [ep.CR.Accept]
// begin a connection, whose outcome is an event; [ep.Endpoint.PostSend],
// [ep.Endpoint.PostRecv], [ep.Endpoint.PostRDMAWrite], [ep.Endpoint.PostRDMARead] and
// [ep.Endpoint.PostBatch] return at once, and each request that they take ends in
// exactly one completion. [ep.Endpoint.Disconnect] ends the connection,
// [ep.Endpoint.Reset] makes the endpoint UNCONNECTED again, [ep.Endpoint.Close] frees
// it. Its zone, dispatchers and shared receive queue can't be closed before it. Any
// goroutine may call any method at any time. All of them: go doc godat/ep Endpoint.
//
// A [Conn] is an endpoint whose memory, receives and events are arranged already.
type Endpoint = ep.Endpoint

// EndpointOf is the endpoint that an event is about, or nil.
func EndpointOf(ev Event) *Endpoint { return ep.Of(ev) }

// EndpointConfig says what an endpoint is made of: the arguments of dat_ep_create
// and dat_ep_create_with_srq. Its fields: go doc godat/ep Config.
type EndpointConfig = ep.Config

// EndpointAttr are an endpoint's attributes: DAT_EP_ATTR. A field that is 0 takes
// its default. Its fields, with their units and defaults: go doc godat/ep Attr.
type EndpointAttr = ep.Attr

// Values of [EndpointAttr] and of queries that 0 can't express, because 0 means
// something else there.
const (
	NoDTOs      = ep.NoDTOs      // no requests, receives or reads at all
	NoWatermark = ep.NoWatermark // a watermark that is never reached: DAT_WATERMARK_INFINITE
	Unknown     = ep.Unknown     // a count that the device can't tell: DAT_VALUE_UNKNOWN
)

// ConnectConfig says where an endpoint connects to, and for how long it tries: the
// arguments of dat_ep_connect. Its fields: go doc godat/ep ConnectConfig.
type ConnectConfig = ep.ConnectConfig

// SRQ is a shared receive queue: receives that any of its endpoints may take. It
// answers to DAT_SRQ_HANDLE.
//
// [IA.NewSRQ] makes one, and [EndpointConfig] names it. PostRecv posts a receive, whose
// completion comes from the endpoint that took it. After SetLowWatermark an
// asynchronous event tells when few receives are left. Close fails while an endpoint
// takes from the queue. Any goroutine may call its methods. All of them: go doc
// godat/ep SRQ.
type SRQ = ep.SRQ

// SRQOf is the shared receive queue that an asynchronous error is about, or nil.
func SRQOf(ev Event) *SRQ { return ep.SRQOf(ev) }

// SRQAttr are a shared receive queue's attributes: DAT_SRQ_ATTR. A field that is 0
// takes its default. Its fields: go doc godat/ep SRQAttr.
type SRQAttr = ep.SRQAttr

// PSP is a public service point: it listens on a connection qualifier, and each
// request that comes is an event. It answers to DAT_PSP_HANDLE.
//
// [IA.NewPSP] makes one. Close stops listening; requests that have come stay valid. Any
// goroutine may call its methods. All of them: go doc godat/ep PSP. [IA.Listen] makes a
// service point that also accepts.
type PSP = ep.PSP

// PSPConfig says where a service point listens, and which dispatcher gets its requests:
// the arguments of dat_psp_create and dat_psp_create_any. Its fields: go doc godat/ep
// PSPConfig.
type PSPConfig = ep.PSPConfig

// RSP is a reserved service point: it listens for one request, for one endpoint. It
// answers to DAT_RSP_HANDLE.
//
// [IA.NewRSP] makes one; Close releases the endpoint if no request has come. Any
// goroutine may call its methods. All of them: go doc godat/ep RSP.
type RSP = ep.RSP

// RSPConfig says where a reserved service point listens, and for which endpoint: the
// arguments of dat_rsp_create. Its fields: go doc godat/ep RSPConfig.
type RSPConfig = ep.RSPConfig

// CSP is a common service point: it listens at an address as sockets do, "host:port".
// It answers to DAT_CSP_HANDLE.
//
// [IA.NewCSP] makes one, [ep.Endpoint.CommonConnect] connects to it; Close stops
// listening. Any goroutine may call its methods. All of them: go doc godat/ep CSP.
type CSP = ep.CSP

// CSPConfig says where a common service point listens, and which dispatcher gets its
// requests: the arguments of dat_csp_create. Its fields: go doc godat/ep CSPConfig.
type CSPConfig = ep.CSPConfig

// Comm is a communication domain, in the numbers of the system's socket call:
// DAT_COMM. The zero value is the adapter's own.
type Comm = ep.Comm

// CR is a connection request that waits for an answer. It answers to DAT_CR_HANDLE.
//
// [RequestOf] takes one from its event. Query describes the peer. Exactly one of
// Accept, Reject and Handoff answers the request, which is invalid afterwards. Any
// goroutine may call its methods. All of them: go doc godat/ep CR.
type CR = ep.CR

// RequestOf is the connection request that an event tells of, or nil. A program that
// takes the request must answer it.
func RequestOf(ev Event) *CR { return ep.RequestOf(ev) }

// AddressHandle names the receiver of a datagram: DAT_IB_ADDR_HANDLE. No provider has
// datagrams, so no call makes one.
type AddressHandle = ep.AddressHandle

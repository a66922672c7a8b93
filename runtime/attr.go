package runtime

import (
	"godat/ep"
	"godat/hw"
	"godat/mem"
)

// IAAttr are an adapter's attributes: DAT_IA_ATTR. A count that nothing limits is
// math.MaxInt32. What the adapter lacks is 0 or false; it may lack windows (RMR),
// shared receive queues and zero-based addresses.
type IAAttr struct {
	AdapterName               string // the device
	VendorName                string
	Hardware, Firmware        [2]int // versions: major, minor
	Address                   string // the adapter's own, as Connect takes it
	MaxEPs                    int
	MaxDTOPerEP               int // requests, or receives
	MaxReadPerEPIn            int // incoming RDMA reads of one endpoint at a time
	MaxReadPerEPOut           int // outgoing RDMA reads of one endpoint at a time
	MaxEVDs                   int
	MaxEVDQLen                int
	MaxIOVPerDTO              int // segments of a send or receive
	MaxLMRs                   int
	MaxLMRBlockSize           uint64 // bytes of a region
	MaxLMRVirtualAddress      uint64
	MaxPZs                    int
	MaxMessageSize            uint64 // bytes of a send
	MaxRDMASize               uint64 // bytes of a read or write
	MaxRMRs                   int
	MaxRMRTargetAddress       uint64
	MaxSRQs                   int
	MaxEPPerSRQ               int
	MaxRecvPerSRQ             int
	MaxIOVPerRead             int // segments
	MaxIOVPerWrite            int // segments
	MaxReadIn, MaxReadOut     int // RDMA reads of all endpoints together at a time
	MaxReadInGuaranteed       bool
	MaxReadOutGuaranteed      bool // every endpoint can use its maximum at the same time
	ZeroBased                 bool
	Extension                 Extension
	ExtensionVersion          int
	TransportAttr, VendorAttr []NamedAttr
}

// Extension says which of DAT's extensions an adapter has.
type Extension uint8

// The extensions.
const (
	NoExtension   Extension = 0
	InfiniBandExt Extension = 1
)

// IBExtensionVersion is the version of the InfiniBand extension. The named attributes
// of an adapter with the extension say which of its operations the adapter has.
const IBExtensionVersion = 209

// NamedAttr is an attribute that DAT has no field for: DAT_NAMED_ATTR.
type NamedAttr struct{ Name, Value string }

// ProviderAttr are a provider's attributes: DAT_PROVIDER_ATTR. They describe the device
// together with this library, which adds what some devices lack.
type ProviderAttr struct {
	Name                  string
	Version               [2]int        // of this library: major, minor
	DAPLVersion           [2]int        // of the API: 2.0
	LMRTypes              []mem.MemType // how a region may get its memory
	IOVOwnership          IOVOwnership
	QoS                   ep.QoS
	CompletionFlags       hw.Flags // those that posts and attributes may use
	ThreadSafe            bool
	MaxPrivateData        int // bytes
	Multipath             bool
	EPCreator             EPCreator
	PZSupport             PZSupport
	Alignment             int        // of buffers, for speed: bytes
	StreamMerging         [6][6]bool // by SOFTWARE, CR, DTO, CONNECTION, RMR_BIND, ASYNC
	SRQ                   bool
	SRQWatermarks         int
	SRQPZDifference       bool // an endpoint's zone may differ from its SRQ's
	SRQInfo, EPRecvInfo   bool // the queries return real counts
	LMRSyncRequired       bool
	AsyncReturnGuaranteed bool // a post never blocks
	WriteForReadRequired  bool // a read's sink needs RemoteWrite
	ContextExposure       bool // a read shows the sink's context to the peer
	RMRScope              mem.RMRScope
	SignalSafe            bool
	HA                    bool
	HALoadBalancing       HALoadBalancing
	SpecificAttr          []NamedAttr
}

// IOVOwnership says who owns the array of segments after a post has returned.
type IOVOwnership uint8

// IOVConsumer is the only answer: the post copies the array, and the caller may use it
// again.
const IOVConsumer IOVOwnership = 0

// EPCreator says when a service point makes endpoints by itself.
type EPCreator uint8

// When a service point makes endpoints by itself.
const (
	EPCreatorNever   EPCreator = 0
	EPCreatorIfAsked EPCreator = 1
	EPCreatorAlways  EPCreator = 2
)

// PZSupport says how many zones an endpoint may share.
type PZSupport uint8

// PZUnique is the only answer: an endpoint has one zone.
const PZUnique PZSupport = 0

// version is this library's: major, minor.
var version = [2]int{0, 1}

// allFlags are the completion flags this library has.
const allFlags = hw.Suppress | hw.SolicitedWait | hw.Unsignalled | hw.BarrierFence | hw.EVDThreshold

package hw

// Attr is what a device can do. Counts that have no limit of their own are
// reported as math.MaxInt32.
type Attr struct {
	Provider string // the provider's name
	Device   string // the device's name
	Address  string // its own address, as Connect takes it
	Vendor   string
	Hardware [2]int // version: major, minor
	Firmware [2]int

	// Ops are the operations it takes. OpSendInvalidate is about keys of the peer's;
	// that peers may invalidate its own keys, and that the receive says so, is
	// OpRecvInvalidate.
	Ops OpSet

	MaxQPs, MaxMRs, MaxZones, MaxCQs, MaxSRQs, MaxWindows int

	MaxDepth        int // requests outstanding per queue
	MaxCQDepth      int
	MaxSendSegments int
	MaxRecvSegments int
	MaxReadSegments int
	MaxReadsIn      int // per queue pair
	MaxReadsOut     int
	MaxMessage      uint64 // bytes of a send
	MaxRDMA         uint64 // bytes of a read or write
	MaxMR           uint64 // bytes of a region
	MaxPrivate      int    // bytes of private data in a connection request, accept and reject
	MaxSRQDepth     int
	MaxSRQSegments  int
	Alignment       int  // best alignment of buffers, bytes
	ZeroBased       bool // windows can be addressed from zero
	// NotReadyWait says that a send waits for a receive to be posted; without it
	// a send that finds none breaks the connection at once.
	NotReadyWait bool
	// ExposesSink says that a read shows the peer its sink's key, under which the
	// peer could write there for as long as the read lasts.
	ExposesSink bool
}

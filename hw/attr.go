package hw

// Attr describes what a device can do. A count without a limit of its own is
// math.MaxInt32.
type Attr struct {
	Provider string // the provider's name
	Device   string // the device's name
	Address  string // the device's address, in the form of ConnectConfig.Addr
	Vendor   string
	Hardware [2]int // version: major, minor
	Firmware [2]int

	// Ops holds the operations that the device executes. OpSendInvalidate means that
	// it can invalidate a peer's keys; OpRecvInvalidate means that peers can
	// invalidate its own keys, and that the receive reports it.
	Ops OpSet

	MaxQPs, MaxMRs, MaxZones, MaxCQs, MaxSRQs, MaxWindows int

	MaxDepth        int // requests outstanding per queue
	MaxCQDepth      int
	MaxSendSegments int
	MaxRecvSegments int
	MaxReadSegments int
	MaxReadsIn      int    // reads and atomics of the peer outstanding per queue pair
	MaxReadsOut     int    // reads and atomics outstanding towards the peer, per queue pair
	MaxMessage      uint64 // bytes of a send
	MaxRDMA         uint64 // bytes of a read or write
	MaxMR           uint64 // bytes of a region
	MaxPrivate      int    // bytes of private data in a connection request, accept and reject
	MaxSRQDepth     int
	MaxSRQSegments  int
	Alignment       int  // best alignment of buffers, bytes
	ZeroBased       bool // windows can be addressed from zero
	// NotReadyWait says that a send waits until the peer posts a receive; without
	// it a send that finds no receive breaks the connection at once.
	NotReadyWait bool
	// Strict says that connections which the library makes do without that wait, unless
	// the program asks for one: so the program fails here as it would without
	// NotReadyWait. An endpoint of the program's own waits as its attributes say.
	Strict bool
	// ExposesSink says that a read tells the peer the key of its sink. The peer could
	// write to the sink under that key for as long as the read lasts.
	ExposesSink bool
}

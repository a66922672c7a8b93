package ep

// Context is what [Config.Context] was when the endpoint was made; nil for a nil
// endpoint.
func (e *Endpoint) Context() any {
	if e == nil {
		return nil
	}
	return e.context
}

// Reads are how many RDMA reads the two ends agreed on when they connected: in,
// those that the peer may have outstanding here; out, those that this end may have at
// the peer, while more wait their turn. Attr says what was asked for. Before the
// endpoint is connected both are 0.
func (e *Endpoint) Reads() (in, out int) {
	if e == nil {
		return 0, 0
	}
	both := e.profile.agreed.Load()
	return int(uint32(both >> 32)), int(uint32(both))
}

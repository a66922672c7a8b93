package ep

// Context returns the [Config.Context] that the endpoint was made with; nil for a
// nil endpoint.
func (e *Endpoint) Context() any {
	if e == nil {
		return nil
	}
	return e.context
}

// Reads returns how many RDMA reads the two ends agreed on when they connected: in
// is how many the peer may have outstanding here, out how many this end may have
// outstanding at the peer; further ones wait. Attr says what was asked for. Both
// are 0 before the endpoint is connected.
func (e *Endpoint) Reads() (in, out int) {
	if e == nil {
		return 0, 0
	}
	both := e.profile.agreed.Load()
	return int(uint32(both >> 32)), int(uint32(both))
}

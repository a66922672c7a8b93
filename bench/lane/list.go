package lane

// Anchor is a lane that is none of the library's.
type Anchor struct {
	Name, Writes string
	Open         func(Config) (Lane, error) // uses Size, Depth and Producers
}

// Anchors returns what a program would use in place of the library, and the least that
// it could cost.
func Anchors() []Anchor {
	return []Anchor{
		{"raw channel", "<-c", func(c Config) (Lane, error) { return NewChannel(c.Depth), nil }},
		{"raw ring", "ring.Pop(&m)", func(c Config) (Lane, error) { return NewRing(c.Depth), nil }},
		{"map of channels", "<-requests[id]", func(c Config) (Lane, error) { return NewRequests(c.Depth), nil }},
		{"net.Conn", "io.ReadFull(conn, buf)", func(c Config) (Lane, error) { return NewTCP(c) }},
		{"net.Pipe", "io.ReadFull(pipe, buf)", func(c Config) (Lane, error) { return NewPipe(c), nil }},
	}
}

// RoundTrips are the anchors of Echo.
func RoundTrips() (list []Anchor) {
	for _, a := range Anchors() {
		list = append(list, Anchor{a.Name, a.Writes, func(c Config) (Lane, error) {
			there, err := a.Open(c)
			if err != nil {
				return nil, err
			}
			back, err := a.Open(c)
			if err != nil {
				return nil, err
			}
			return NewRoundTrip(there, back), nil
		}})
	}
	return list
}

// Copies are the anchors of Writes.
func Copies() []Anchor {
	return []Anchor{
		{"copy", "copy(to, from)", func(c Config) (Lane, error) { return NewCopy(c), nil }},
		{"net.Conn", "io.ReadFull(conn, buf)", func(c Config) (Lane, error) { return NewTCP(c) }},
	}
}

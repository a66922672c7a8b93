package lane

// Anchor is a lane that is none of the library's.
type Anchor struct {
	Name, Writes string
	Open         func(size, depth int) (Lane, error)
}

// Anchors returns what a program would use in place of the library, and the least that
// it could cost.
func Anchors() []Anchor {
	return []Anchor{
		{"raw channel", "<-c", func(_, depth int) (Lane, error) { return NewChannel(depth), nil }},
		{"raw ring", "ring.Pop(&m)", func(_, depth int) (Lane, error) { return NewRing(depth), nil }},
		{"map of channels", "<-requests[id]", func(_, depth int) (Lane, error) { return NewRequests(depth), nil }},
		{"net.Conn", "io.ReadFull(conn, buf)", func(size, depth int) (Lane, error) { return NewTCP(size, depth) }},
		{"net.Pipe", "io.ReadFull(pipe, buf)", func(size, depth int) (Lane, error) { return NewPipe(size, depth), nil }},
	}
}

// RoundTrips are the anchors of Echo.
func RoundTrips() (list []Anchor) {
	for _, a := range Anchors() {
		list = append(list, Anchor{a.Name, a.Writes, func(size, depth int) (Lane, error) {
			there, err := a.Open(size, depth)
			if err != nil {
				return nil, err
			}
			back, err := a.Open(size, depth)
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
		{"copy", "copy(to, from)", func(size, depth int) (Lane, error) { return NewCopy(size, depth), nil }},
		{"net.Conn", "io.ReadFull(conn, buf)", func(size, depth int) (Lane, error) { return NewTCP(size, depth) }},
	}
}

package lane

import "errors"

// Anchor is a lane that is none of the library's.
type Anchor struct {
	Name string
	Open func(Config) (Lane, error) // uses Size, Depth and Producers
}

// RawRing is the anchor whose consumer polls.
const RawRing = "raw ring"

// Anchors returns what a program would use in place of the library, and the least that
// it could cost.
func Anchors() []Anchor {
	return []Anchor{
		{"raw channel", func(c Config) (Lane, error) { return NewChannel(c.Depth), nil }},
		{RawRing, func(c Config) (Lane, error) { return NewRing(c.Depth), nil }},
		{"map of channels", func(c Config) (Lane, error) { return NewRequests(c.Depth), nil }},
		{overTCP, openTCP},
		{overPipe, func(c Config) (Lane, error) { return NewPipe(c), c.short() }},
	}
}

// RoundTrips are the anchors of Echo.
func RoundTrips() (list []Anchor) {
	for _, a := range Anchors() {
		list = append(list, Anchor{a.Name, func(c Config) (Lane, error) {
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
		{"copy", func(c Config) (Lane, error) { return NewCopy(c), nil }},
		{overTCP, openTCP},
	}
}

// errShort refuses messages that can't tell their slot.
var errShort = errors.New("a message over a byte stream tells its slot in 8 bytes: a size below 8 can't be measured")

func (c Config) short() error {
	if c.Size < slotLen {
		return errShort
	}
	return nil
}

func openTCP(c Config) (Lane, error) {
	if err := c.short(); err != nil {
		return nil, err
	}
	return NewTCP(c)
}

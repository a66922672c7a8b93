// Package lane has what can carry a message from a poster to a consumer: a connection
// of the library, in each way of delivery, and what a program would use in its place.
package lane

// Lane carries messages of one size from producers to a consumer. A message is known by
// its slot. Each producer has an equal part of the slots, and the slots of its successive
// messages go around in it: those of the only producer are 0, 1, … Slots-1, 0, …
type Lane interface {
	// Slots is how many slots there are; half as many messages may be outstanding.
	Slots() int
	// Post sends a message. Each producer has one goroutine that posts.
	Post(slot int) error
	// Take hands the slot of each message to f, until f returns false. No message may
	// be outstanding then.
	Take(f func(slot int) (more bool)) error
	// Close also ends a Take that waits, and posts beside it, if a Post may fail.
	Close() error
}

// Teller is a lane that takes messages in a mode.
type Teller interface {
	// Loop is the name of the mode whose loop took them. No Take may be under way.
	Loop() string
}

// Blocker is a lane whose Post may wait for the consumer.
type Blocker interface {
	// PostBlocks reports whether a post waits, if depth messages are outstanding.
	PostBlocks(depth int) bool
}

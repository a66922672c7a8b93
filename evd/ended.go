package evd

// Ended reports whether the event tells of the end of a connection, or of an attempt
// at one: it is the last event of that connection, and Err says why it ended, nil
// for an end in order.
func (e Event) Ended() bool { return e.Number != Established && e.Number.Stream() == StreamConnection }

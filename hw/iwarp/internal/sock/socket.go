package sock

// Socket is what goroutines that look at many sockets use of one.
type Socket interface {
	// Poll reads and processes what has come, for a consumer, unless another goroutine has the
	// right to read. It reports whether anything had come.
	Poll() (came bool)
	// Hang makes the receiver read until it finds the end of the stream, or the error.
	Hang()
	// Control calls f with the descriptor, if the socket is open.
	Control(f func(fd uintptr)) error
}

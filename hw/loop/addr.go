package loop

import "strconv"

// Addr is the address of one end of a connection, or of a listener. It is a
// net.Addr.
type Addr struct {
	Device string
	Qual   uint64 // the connection qualifier; loop picks one for the initiator
}

// Network returns "loop".
func (Addr) Network() string { return Name }

// String returns "device:qualifier".
func (a Addr) String() string { return a.Device + ":" + strconv.FormatUint(a.Qual, 10) }

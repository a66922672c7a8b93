package hw

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Pairer is a Device that connects a queue pair to a peer by values which the two
// programs exchange themselves. No connection manager takes part, so the device may hear
// nothing of what the peer does. A device that implements Pairer for a transport that can't
// pair fails with MODEL_NOT_SUPPORTED.
type Pairer interface {
	// Local returns the values by which a peer reaches the queue pair in its present
	// life. They stay the same until Reset, which changes number and PSN. The queue pair's
	// owner makes the call.
	Local(qp QP) (PairAddr, error)

	// Pair connects a queue pair that is new or reset to the peer with those values. Facts
	// hears Established at once, with the reads of this queue pair's configuration and
	// the two ends' values as addresses. The peer may not have paired yet: what is sent
	// to it waits, and a receive that completes is the only sign that it has. The call
	// counts as one on the queue pair. A value that the device can tell is wrong is
	// INVALID_PARAMETER, and the queue pair stays as it was.
	//
	// A device that hears of the peer's end reports Down as on other connections. Another
	// one notices only that a request fails, of the program's or of its own keep-alive. It
	// may learn from the peer's Farewell that the end was in order.
	Pair(qp QP, peer PairAddr) error
}

// The ranges of a PairAddr's fields.
const (
	MaxQPN = 1<<24 - 1
	MaxPSN = 1<<24 - 1

	MaxFarewell = 1<<48 - 1
)

// PairAddr is what a peer has to know of a queue pair to reach it. It is a net.Addr.
type PairAddr struct {
	QPN uint32   // the queue pair's number
	PSN uint32   // the number of the first packet that it sends
	LID uint16   // its port's local identifier; 0 on Ethernet
	GID [16]byte // its port's global identifier
	MTU int      // the most bytes of a packet's payload; 0 says nothing of it

	// Farewell says where the peer's device writes that it has ended the connection in order;
	// 0: nowhere. Only ibv gives it and understands it: other programs' texts don't have it.
	Farewell uint64
}

// Network returns "pair".
func (PairAddr) Network() string { return "pair" }

// String returns the text form. Without MTU it is what ibv_rc_pingpong and its kin
// exchange: LID, queue pair number, PSN and GID in hexadecimal, of 4, 6, 6 and 32 digits, with
// colons between them. An MTU follows as a decimal number, after another colon, and behind it a
// Farewell of 12 hexadecimal digits.
func (a PairAddr) String() string {
	s := fmt.Sprintf("%04x:%06x:%06x:%x", a.LID, a.QPN, a.PSN, a.GID)
	if a.MTU != 0 || a.Farewell != 0 {
		s += ":" + strconv.Itoa(a.MTU)
	}
	if a.Farewell != 0 {
		s += fmt.Sprintf(":%012x", a.Farewell)
	}
	return s
}

// MarshalText returns the text form. It fails if a value is out of its range.
func (a PairAddr) MarshalText() ([]byte, error) {
	if err := a.inRange("hw.PairAddr.MarshalText"); err != nil {
		return nil, err
	}
	return []byte(a.String()), nil
}

// Check returns an INVALID_PARAMETER of the call op that names the first value which no
// connected queue pair has, and says where the peer takes it from.
func (a PairAddr) Check(op string) error {
	if err := a.inRange(op); err != nil {
		return err
	}
	bad := func(format string, args ...any) error { return Errorf(op, InvalidParameter, Arg2, format, args...) }
	ip := netip.AddrFrom16(a.GID)
	switch {
	case a.QPN <= 1:
		return bad("queue pair number %#x is the port's own: the peer's value is missing, or is not that of its queue pair", a.QPN)
	case a.QPN == MaxQPN:
		return bad("queue pair number %#x is for multicast: give the number of the peer's queue pair", a.QPN)
	case a.LID == 0 && a.GID == [16]byte{}:
		return bad("neither a GID nor a LID: on Ethernet the peer has to give a GID (-g or -x of C programs)")
	case ip.IsMulticast() || ip.Unmap().IsMulticast():
		return bad("GID %v is of a group: give that of the peer's port", ip.Unmap())
	case ip.Unmap().IsLoopback():
		return bad("GID %v is of this host alone: give the address of the peer's port", ip.Unmap())
	case ip.Is4In6() && ip.Unmap().IsUnspecified():
		return bad("GID %v is no port's: give the address of the peer's port", ip.Unmap())
	}
	return nil
}

// inRange returns an INVALID_PARAMETER that names the first value which is out of its range.
func (a PairAddr) inRange(op string) error {
	bad := func(format string, args ...any) error { return Errorf(op, InvalidParameter, Arg2, format, args...) }
	switch {
	case a.QPN > MaxQPN:
		return bad("queue pair number %#x; the last is %#x", a.QPN, MaxQPN)
	case a.PSN > MaxPSN:
		return bad("PSN %#x; the last is %#x", a.PSN, MaxPSN)
	case !validMTU(a.MTU):
		return bad("MTU %d; it is 256, 512, 1024, 2048 or 4096", a.MTU)
	case a.Farewell > MaxFarewell:
		return bad("Farewell %#x; the last is %#x", a.Farewell, uint64(MaxFarewell))
	}
	return nil
}

// validMTU reports whether InfiniBand has packets of that size. 0 is none said.
func validMTU(n int) bool {
	switch n {
	case 0, 256, 512, 1024, 2048, 4096:
		return true
	}
	return false
}

// UnmarshalText parses the text form. It takes digits in both cases, and nothing else
// that String does not write. When it fails, a stays as it was.
func (a *PairAddr) UnmarshalText(text []byte) error {
	const op = "hw.PairAddr.UnmarshalText"
	bad := func(format string, args ...any) error { return Errorf(op, InvalidParameter, Arg1, format, args...) }
	if len(text) > longestPairAddr {
		return bad("%d bytes; at most %d are an address", len(text), longestPairAddr)
	}
	parts := strings.Split(string(text), ":")
	if len(parts) < 4 || len(parts) > 6 {
		return bad("%q: %d fields, not LID:QPN:PSN:GID, with :MTU or :MTU:FAREWELL behind it", text, len(parts))
	}
	var b PairAddr
	var lid uint32
	for i, f := range [...]struct {
		name   string
		digits int
		to     *uint32
	}{{"LID", 4, &lid}, {"queue pair number", 6, &b.QPN}, {"PSN", 6, &b.PSN}} {
		n, err := strconv.ParseUint(parts[i], 16, 32)
		if err != nil || len(parts[i]) != f.digits {
			return bad("%q: the %s %q is not of %d hexadecimal digits", text, f.name, parts[i], f.digits)
		}
		*f.to = uint32(n)
	}
	b.LID = uint16(lid)
	gid, err := hex.DecodeString(parts[3])
	if err != nil || len(gid) != len(b.GID) {
		return bad("%q: the GID %q is not of 32 hexadecimal digits", text, parts[3])
	}
	copy(b.GID[:], gid)
	if len(parts) > 4 {
		n, err := strconv.Atoi(parts[4])
		if err != nil || n == 0 && len(parts) == 5 || !validMTU(n) || strconv.Itoa(n) != parts[4] {
			return bad("%q: the MTU %q is not 256, 512, 1024, 2048 or 4096", text, parts[4])
		}
		b.MTU = n
	}
	if len(parts) > 5 {
		n, err := strconv.ParseUint(parts[5], 16, 48)
		if err != nil || n == 0 || len(parts[5]) != farewellDigits {
			return bad("%q: the Farewell %q is not of %d hexadecimal digits", text, parts[5], farewellDigits)
		}
		b.Farewell = n
	}
	*a = b
	return nil
}

const (
	farewellDigits  = 12
	longestPairAddr = 4 + 1 + 6 + 1 + 6 + 1 + 32 + 1 + 4 + 1 + farewellDigits // of text forms
)

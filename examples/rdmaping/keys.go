package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"godat/hw"
	"godat/mem"
)

// What the two ends of a test of perftest exchange, in this order: their versions; the cycle
// of their addresses and the length of a cache line; verbs' number of the port's MTU; and their
// keys, which they then exchange again whenever they wait for each other.
const (
	version      = "6.06" // the exchange is that of this version
	leastVersion = 5.70
	versionSize  = 16
	ownCycle     = 4096
	ownCacheLine = 64
	keysSize     = 59  // with a LID alone
	keysSizeGID  = 108 // with a GID, too
)

// keys are what a peer needs to reach this end's memory.
type keys struct {
	pair   hw.PairAddr
	reads  int // reads that the end takes at a time
	memory mem.RemoteSegment
	gid    bool // the GID belongs to the text
}

// greet exchanges the versions and the cycle, and returns the longer cycle.
func (s *session) greet() (cycle int, err error) {
	mine, theirs := make([]byte, versionSize), make([]byte, versionSize)
	copy(mine, version)
	if err := s.swap(mine, theirs); err != nil {
		return 0, err
	}
	if err := checkVersion(theirs); err != nil {
		return 0, err
	}
	var numbers [2]uint32 // of the peer's
	for i, own := range [...]uint32{ownCycle, ownCacheLine} {
		b := make([]byte, 4)
		if err := s.swap(binary.BigEndian.AppendUint32(nil, own), b); err != nil {
			return 0, err
		}
		numbers[i] = binary.BigEndian.Uint32(b)
	}
	if numbers[0] > mostBuffer {
		return 0, fmt.Errorf("the peer's cycle is %d bytes; at most %d", numbers[0], mostBuffer)
	}
	return max(ownCycle, int(numbers[0])), nil
}

// checkVersion looks at the first word of a peer.
func checkVersion(word []byte) error {
	text, _, _ := bytes.Cut(word, []byte{0})
	if v, err := strconv.ParseFloat(string(text), 64); err != nil || v < leastVersion {
		return fmt.Errorf("the peer's version is %q: it is not perftest of version %.2f or later, without -R", text, leastVersion)
	}
	return nil
}

// swapMTU exchanges verbs' numbers of the MTUs, and returns the peer's in bytes.
func (s *session) swapMTU(own int) (int, error) {
	const least = 256
	digit := byte('0')
	for n := least; n <= own; n *= 2 {
		digit++
	}
	var b [2]byte
	if err := s.swap([]byte{digit, 0}, b[:]); err != nil {
		return 0, err
	}
	if b[0] < '1' || b[0] > '5' || b[1] != 0 {
		return 0, fmt.Errorf("the peer's MTU is %q, which is not 1 to 5", b)
	}
	return least << (b[0] - '1'), nil
}

// swapKeys exchanges the keys. Both ends give a GID, or neither does.
func (s *session) swapKeys(own keys) (keys, error) {
	theirs := make([]byte, own.size())
	if err := s.swap(own.encode(), theirs); err != nil {
		return keys{}, err
	}
	return parseKeys(theirs, own.gid)
}

func (k keys) size() int {
	if k.gid {
		return keysSizeGID
	}
	return keysSize
}

// encode returns LID:reads:QPN:PSN:key:address:SRQ, with a byte at a time of the GID before
// SRQ, which is of connections of other kinds.
func (k keys) encode() []byte {
	a := &k.pair
	b := fmt.Appendf(nil, "%04x:%04x:%06x:%06x:%08x:%016x:", a.LID, k.reads, a.QPN, a.PSN, k.memory.Context, k.memory.Addr)
	if k.gid {
		for _, octet := range a.GID {
			b = fmt.Appendf(b, "%02x:", octet)
		}
		return append(b, "00000000:\x00"...)
	}
	return append(b, "00000000\x00"...)
}

var errKeys = errors.New("the peer's keys are not those of perftest without -R, with or without a GID index (-x) as here")

// parseKeys parses the text of keys.
func parseKeys(text []byte, gid bool) (k keys, err error) {
	k.gid = gid
	fields := strings.Split(strings.TrimRight(string(text), ":\x00"), ":")
	widths := []int{4, 4, 6, 6, 8, 16}
	if gid {
		widths = append(widths, slices.Repeat([]int{2}, len(k.pair.GID))...)
	}
	widths = append(widths, 8)
	if len(fields) != len(widths) {
		return k, fmt.Errorf("%w: %q", errKeys, text)
	}
	numbers := make([]uint64, len(fields))
	for i, f := range fields {
		if numbers[i], err = strconv.ParseUint(f, 16, 4*widths[i]); err != nil || len(f) != widths[i] {
			return k, fmt.Errorf("%w: %q in %q", errKeys, f, text)
		}
	}
	k.pair = hw.PairAddr{LID: uint16(numbers[0]), QPN: uint32(numbers[2]), PSN: uint32(numbers[3])}
	k.reads = int(numbers[1])
	k.memory = mem.RemoteSegment{Context: uint32(numbers[4]), Addr: numbers[5]}
	if gid {
		for i := range k.pair.GID {
			k.pair.GID[i] = byte(numbers[6+i])
		}
	}
	return k, nil
}

const mega = 1 << 20 // perftest's MB

// report is what an end that has measured writes, reads and atomics tells its peer, and with
// both ends at work also one of sends.
type report struct {
	size, count         uint64  // of messages, on all queue pairs together
	peak, average, rate float64 // MB and millions of messages a second
}

// reported is what took so long: so many messages of a size.
func reported(took time.Duration, size int, count uint64) report {
	rate := float64(count) / max(took.Seconds(), 1e-9)
	average := rate * float64(size) / mega
	return report{size: uint64(size), count: count, peak: average, average: average, rate: rate / 1e6}
}

// swapReports exchanges reports, a value at a time.
func (s *session) swapReports(own report) (r report, err error) {
	mine := [...]uint64{own.size, own.count, math.Float64bits(own.peak), math.Float64bits(own.average), math.Float64bits(own.rate)}
	var theirs [len(mine)]uint64
	for i, v := range mine {
		b := make([]byte, 8)
		if err := s.swap(binary.BigEndian.AppendUint64(nil, v), b); err != nil {
			return r, err
		}
		theirs[i] = binary.BigEndian.Uint64(b)
	}
	return report{
		size: theirs[0], count: theirs[1],
		peak: math.Float64frombits(theirs[2]), average: math.Float64frombits(theirs[3]), rate: math.Float64frombits(theirs[4]),
	}, nil
}

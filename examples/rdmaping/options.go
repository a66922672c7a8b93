package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
)

const (
	// mostSize is the most bytes of a message, and of all queue pairs' messages together.
	mostSize = 1 << 30
	// allSize is the longest message of a run over all sizes: 2 to the power of allPower.
	allPower = 23
	allSize  = 1 << allPower
)

// pingpong reports whether the exchange is that of ibv_rc_pingpong and its kin.
func (o *options) pingpong() bool { return strings.HasSuffix(o.Test, "pingpong") }

// sends reports whether the test is of messages, for which the peer posts receives.
func (o *options) sends() bool { return o.pingpong() || strings.HasPrefix(o.Test, "send") }

// latency reports whether the test is one of perftest's of one message at a time.
func (o *options) latency() bool { return strings.HasSuffix(o.Test, "_lat") }

// atomic reports whether the test is of atomics.
func (o *options) atomic() bool { return strings.HasPrefix(o.Test, "atomic") }

// fetches reports whether the requests of the test count against what a peer takes at a time.
func (o *options) fetches() bool { return o.atomic() || strings.HasPrefix(o.Test, "read") }

// hosts reports whether this end only has the memory that its peer's requests are for.
func (o *options) hosts() bool {
	return !o.client() && !o.Both && !o.sends() && o.Test != "write_lat"
}

// apart reports whether what this end's requests read or write here has to be apart from what
// the peer's requests do.
func (o *options) apart() bool { return !o.sends() && (o.Both || o.Test == "write_lat") }

// sizes are the sizes of messages, in their order.
func (o *options) sizes() []int {
	if !o.All {
		return []int{o.Size}
	}
	var all []int
	for power := 1; power <= allPower; power++ {
		all = append(all, 1<<power)
	}
	return all
}

// check refuses command lines that the tags of the options can't refuse, and sets what the C
// program of the test takes where the command line says nothing.
func (o *options) check() error {
	if err := o.checkAll(); err != nil {
		return err
	}
	if o.Size == 0 {
		o.Size = o.ownSize()
	}
	switch {
	case o.Size < 1 || o.Size > mostSize:
		return fmt.Errorf("a message has 1 to %d bytes (-s)", mostSize)
	case o.atomic() && o.Size != atomicSize:
		return fmt.Errorf("an atomic has %d bytes (-s)", atomicSize)
	case o.Count < 1:
		return errors.New("the count is less than 1 (-n)")
	case o.Check && !o.pingpong():
		return errors.New("only pingpong's client sends what can be checked (-c)")
	case o.Timeout <= 0:
		return errors.New("a test takes longer than no time (--timeout)")
	case o.Both && (o.pingpong() || o.latency()):
		return fmt.Errorf("%s goes both ways as it is: -b is for the *_bw tests", o.Test)
	}
	return cmp.Or(o.checkPairs(), o.checkReads(), o.checkMTU())
}

// checkReads looks at -o.
func (o *options) checkReads() error {
	switch {
	case o.Reads == 0:
		o.Reads = 4
	case !o.fetches():
		return fmt.Errorf("%s has no reads: -o is for tests of reads and atomics", o.Test)
	case o.Reads < 1 || o.Reads > mostReads:
		return fmt.Errorf("1 to %d reads (-o)", mostReads)
	}
	return nil
}

// checkMTU looks at -m.
func (o *options) checkMTU() error {
	switch o.MTU {
	case 0:
		if o.pingpong() {
			o.MTU = 1024
		}
	case 256, 512, 1024, 2048, 4096:
	default:
		return errors.New("packets have 256, 512, 1024, 2048 or 4096 bytes (-m)")
	}
	return nil
}

// checkAll looks at -a, and takes the longest of its sizes.
func (o *options) checkAll() error {
	switch {
	case !o.All:
		return nil
	case o.pingpong():
		return fmt.Errorf("%s has no -a: run it once for each size (-s)", o.Test)
	case o.atomic():
		return fmt.Errorf("an atomic has %d bytes: leave out -a", atomicSize)
	case o.Size != 0:
		return errors.New("-a runs all sizes from 2 bytes to 8 MiB: leave out -s")
	}
	o.Size = allSize
	return nil
}

// checkPairs looks at -q.
func (o *options) checkPairs() error {
	if o.Pairs == 0 {
		o.Pairs = 1
		if o.Test == "srq_pingpong" {
			o.Pairs = 16
		}
	}
	room := int64(o.Size) * int64(max(o.Pairs, 1))
	if o.apart() {
		room *= 2
	}
	switch {
	case o.Pairs < 1 || o.Pairs > mostPairs:
		return fmt.Errorf("1 to %d queue pairs (-q)", mostPairs)
	case o.Pairs > 1 && (o.Test == "pingpong" || o.latency()):
		return fmt.Errorf("%s has one queue pair: -q is for the *_bw tests and srq_pingpong", o.Test)
	case room > mostSize:
		return fmt.Errorf("the messages of all queue pairs take %d bytes, and at most %d: choose less for -s or -q", room, mostSize)
	}
	return nil
}

// ownSize is the size that the C program takes by itself.
func (o *options) ownSize() int {
	switch {
	case o.pingpong():
		return 4096
	case o.atomic():
		return atomicSize
	case o.latency():
		return 2
	}
	return 65536
}

package ep

import (
	"cmp"
	"time"

	"godat/hw"
)

// Attr are an endpoint's attributes: DAT_EP_ATTR. Sizes and counts are what is
// asked for; Query tells what was given, which is never less. 0 takes the
// default, except where it says otherwise.
type Attr struct {
	MaxMessageSize uint64 // bytes of a send; default: the device's limit
	MaxRDMASize    uint64 // bytes of an RDMA read or write; default: the device's limit

	// RecvFlags and RequestFlags grant per-post flags: Unsignalled for either,
	// SolicitedWait for receives.
	RecvFlags, RequestFlags hw.Flags

	MaxRecvDTOs    int // receives posted whose completion has not been delivered; default 16, NoDTOs for none
	MaxRequestDTOs int // the same for requests
	MaxRecvIOV     int // segments of a receive; default 4
	MaxRequestIOV  int // segments of a send, read or write; default 4
	MaxReadIn      int // RDMA reads the peer may have outstanding; default 4, NoDTOs for none
	MaxReadOut     int // RDMA reads outstanding here; more wait their turn; default 4, NoDTOs for none

	// ReceiverNotReady is how long a send waits for the peer to post a receive
	// before the connection breaks; default 1 s, negative fails at once. Devices
	// without hw.Attr.NotReadyWait fail at once whatever it is.
	ReceiverNotReady time.Duration
	// DrainTimeout bounds a graceful disconnect, which then becomes an abrupt
	// one; default 10 s, negative means no bound.
	DrainTimeout time.Duration
}

// NoDTOs asks for none where 0 would mean the default.
const NoDTOs = -1

const (
	defaultDTOs     = 16
	defaultIOV      = 4
	defaultReads    = 4
	defaultNotReady = time.Second
	defaultDrain    = 10 * time.Second
)

// resolve fills in the defaults and checks a against the device.
func (a *Attr) resolve(op string, dev hw.Attr) (Attr, error) {
	var r Attr
	if a != nil {
		r = *a
	}
	r.MaxMessageSize = cmp.Or(r.MaxMessageSize, dev.MaxMessage)
	r.MaxRDMASize = cmp.Or(r.MaxRDMASize, dev.MaxRDMA)
	for _, c := range [...]struct {
		name  string
		value *int
		def   int
		limit int
	}{
		{"MaxRecvDTOs", &r.MaxRecvDTOs, defaultDTOs, min(dev.MaxDepth, maxDepth)},
		{"MaxRequestDTOs", &r.MaxRequestDTOs, defaultDTOs, min(dev.MaxDepth, maxDepth)},
		{"MaxRecvIOV", &r.MaxRecvIOV, defaultIOV, min(dev.MaxRecvSegments, maxIOV)},
		{"MaxRequestIOV", &r.MaxRequestIOV, defaultIOV, min(dev.MaxSendSegments, maxIOV)},
		{"MaxReadIn", &r.MaxReadIn, min(defaultReads, dev.MaxReadsIn), dev.MaxReadsIn},
		{"MaxReadOut", &r.MaxReadOut, min(defaultReads, dev.MaxReadsOut), dev.MaxReadsOut},
	} {
		switch {
		case *c.value == 0:
			*c.value = min(c.def, c.limit)
		case *c.value == NoDTOs:
			*c.value = 0
		case *c.value < 0 || *c.value > c.limit:
			return r, hw.Errorf(op, hw.InvalidParameter, hw.Arg7, "%s is %d; this device allows 0 to %d", c.name, *c.value, c.limit)
		}
	}
	if r.MaxMessageSize > dev.MaxMessage || r.MaxRDMASize > dev.MaxRDMA {
		return r, hw.Errorf(op, hw.InvalidParameter, hw.Arg7, "messages of %d and RDMA of %d bytes; this device allows %d and %d",
			r.MaxMessageSize, r.MaxRDMASize, dev.MaxMessage, dev.MaxRDMA)
	}
	if r.RecvFlags&^(hw.Unsignalled|hw.SolicitedWait|hw.EVDThreshold) != 0 || r.RequestFlags&^(hw.Unsignalled|hw.EVDThreshold) != 0 {
		return r, hw.Errorf(op, hw.InvalidParameter, hw.Arg7, "completion flags %#x for receives, %#x for requests", r.RecvFlags, r.RequestFlags)
	}
	r.ReceiverNotReady = orDuration(r.ReceiverNotReady, defaultNotReady)
	r.DrainTimeout = orDuration(r.DrainTimeout, defaultDrain)
	return r, nil
}

// orDuration turns 0 into the default and a negative value into 0.
func orDuration(d, def time.Duration) time.Duration {
	return max(cmp.Or(d, def), 0)
}

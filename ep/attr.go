package ep

import (
	"cmp"
	"time"

	"godat/hw"
	"godat/internal/door"
)

// Attr are an endpoint's attributes: DAT_EP_ATTR. Sizes and counts are what the
// program asks for; Query tells what it was given, which is never less. 0 asks for
// the default, except where a field says otherwise.
type Attr struct {
	ServiceType ServiceType
	QoS         QoS

	MaxMessageSize uint64 // bytes of a send; default: the device's limit
	MaxRDMASize    uint64 // bytes of an RDMA read or write; default: the device's limit

	// RecvFlags and RequestFlags grant per-post flags: Unsignalled for either,
	// SolicitedWait for receives.
	RecvFlags, RequestFlags hw.Flags

	MaxRecvDTOs    int // receives posted whose completion is not delivered yet; default 16, NoDTOs for none
	MaxRequestDTOs int // the same for requests
	MaxRecvIOV     int // segments of a receive; default 4
	MaxRequestIOV  int // segments of a send; default 4
	MaxReadIOV     int // segments of an RDMA read; default MaxRequestIOV
	MaxWriteIOV    int // segments of an RDMA write; default MaxRequestIOV
	MaxReadIn      int // RDMA reads the peer may have outstanding; default 4, NoDTOs for none
	MaxReadOut     int // RDMA reads this end may have outstanding; further ones wait; default 4, NoDTOs for none

	// SoftHighWatermark is how many receives of its shared receive queue the
	// endpoint may hold before an asynchronous event reports it; it is the first
	// argument of SetWatermark. Default: NoWatermark.
	SoftHighWatermark int

	// ReceiverNotReady is how long a send waits for the peer to post a receive
	// before the connection breaks; default 1 s, negative fails at once. Devices
	// without hw.Attr.NotReadyWait ignore it and fail at once. On a device with
	// hw.Attr.Strict, as loop is, a connection of runtime.Dial or runtime.Listen has
	// no wait by default. loop does not count a pause of this process.
	ReceiverNotReady time.Duration
	// DrainTimeout bounds a graceful disconnect, which becomes an abrupt one when
	// it has passed; default 10 s, negative means no bound. A pause of this process
	// in which it passes gives the disconnect its time again.
	DrainTimeout time.Duration
}

// ServiceType is the kind of connection: DAT_SERVICE_TYPE.
type ServiceType uint8

// ReliableConnection is the only service type; every other one is MODEL_NOT_SUPPORTED.
const ReliableConnection ServiceType = 0

// QoS is a quality of service: DAT_QOS.
type QoS uint8

// BestEffort is the only quality of service.
const BestEffort QoS = 0

// NoWatermark as a watermark sets none: DAT_WATERMARK_INFINITE.
const NoWatermark = -1

// NoDTOs asks for none in a field where 0 would mean the default.
const NoDTOs = -1

const (
	defaultDTOs     = 16
	defaultIOV      = 4
	defaultReads    = 4
	defaultNotReady = time.Second
	defaultDrain    = 10 * time.Second
)

// Resolve returns the attributes that an endpoint on the device has with a, or what is wrong with a.
// Package runtime calls it.
func (a *Attr) Resolve(_ door.Key, op string, dev hw.Attr) (Attr, error) { return a.resolve(op, dev) }

// resolve fills in the defaults and checks a against the device.
func (a *Attr) resolve(op string, dev hw.Attr) (Attr, error) {
	var r Attr
	if a != nil {
		r = *a
	}
	r.MaxMessageSize = cmp.Or(r.MaxMessageSize, dev.MaxMessage)
	r.MaxRDMASize = cmp.Or(r.MaxRDMASize, dev.MaxRDMA)
	for _, c := range r.counts(dev) {
		switch {
		case *c.value == 0:
			*c.value = min(c.def, c.limit)
		case *c.value == NoDTOs:
			*c.value = 0
		case *c.value < 0 || *c.value > c.limit:
			return r, hw.Errorf(op, hw.InvalidParameter, hw.Arg7, "Attr.%s is %d; this device allows 0 to %d", c.name, *c.value, c.limit)
		}
	}
	r.MaxRequestIOV = max(r.MaxRequestIOV, r.MaxReadIOV, r.MaxWriteIOV)
	r.SoftHighWatermark = cmp.Or(r.SoftHighWatermark, NoWatermark)
	if r.ServiceType != ReliableConnection || r.QoS != BestEffort {
		return r, hw.Errorf(op, hw.ModelNotSupported, hw.NoSubtype, "Attr.ServiceType is %d and Attr.QoS %d; there are ReliableConnection and BestEffort alone", r.ServiceType, r.QoS)
	}
	if r.SoftHighWatermark < NoWatermark {
		return r, hw.Errorf(op, hw.InvalidParameter, hw.Arg7, "Attr.SoftHighWatermark is %d; NoWatermark sets none", r.SoftHighWatermark)
	}
	if r.MaxMessageSize > dev.MaxMessage || r.MaxRDMASize > dev.MaxRDMA {
		return r, hw.Errorf(op, hw.InvalidParameter, hw.Arg7, "Attr.MaxMessageSize is %d and Attr.MaxRDMASize %d; this device allows %d and %d",
			r.MaxMessageSize, r.MaxRDMASize, dev.MaxMessage, dev.MaxRDMA)
	}
	if r.RecvFlags&^(hw.Unsignalled|hw.SolicitedWait|hw.EVDThreshold) != 0 || r.RequestFlags&^(hw.Unsignalled|hw.EVDThreshold) != 0 {
		return r, hw.Errorf(op, hw.InvalidParameter, hw.Arg7, "Attr.RecvFlags are %#x, which may be Unsignalled, SolicitedWait and EVDThreshold, and Attr.RequestFlags %#x, which may be Unsignalled and EVDThreshold", r.RecvFlags, r.RequestFlags)
	}
	r.ReceiverNotReady = orDuration(r.ReceiverNotReady, defaultNotReady)
	r.DrainTimeout = orDuration(r.DrainTimeout, defaultDrain)
	return r, nil
}

// count is an attribute with a default and a limit.
type count struct {
	name       string
	value      *int
	def, limit int
}

func (a *Attr) counts(dev hw.Attr) [8]count {
	rdmaIOV := max(cmp.Or(a.MaxRequestIOV, defaultIOV), 0)
	return [...]count{
		{"MaxRecvDTOs", &a.MaxRecvDTOs, defaultDTOs, min(dev.MaxDepth, maxDepth)},
		{"MaxRequestDTOs", &a.MaxRequestDTOs, defaultDTOs, min(dev.MaxDepth, maxDepth)},
		{"MaxRecvIOV", &a.MaxRecvIOV, defaultIOV, min(dev.MaxRecvSegments, maxIOV)},
		{"MaxRequestIOV", &a.MaxRequestIOV, defaultIOV, min(dev.MaxSendSegments, maxIOV)},
		{"MaxReadIOV", &a.MaxReadIOV, rdmaIOV, min(dev.MaxReadSegments, dev.MaxSendSegments, maxIOV)},
		{"MaxWriteIOV", &a.MaxWriteIOV, rdmaIOV, min(dev.MaxSendSegments, maxIOV)},
		{"MaxReadIn", &a.MaxReadIn, min(defaultReads, dev.MaxReadsIn), dev.MaxReadsIn},
		{"MaxReadOut", &a.MaxReadOut, min(defaultReads, dev.MaxReadsOut), dev.MaxReadsOut},
	}
}

// again returns attributes that resolve turns into a: it replaces each 0 by the value that
// asks for none.
func (a Attr) again() Attr {
	for _, c := range a.counts(hw.Attr{}) {
		if *c.value == 0 {
			*c.value = NoDTOs
		}
	}
	for _, d := range [...]*time.Duration{&a.ReceiverNotReady, &a.DrainTimeout} {
		if *d == 0 {
			*d = -1
		}
	}
	return a
}

// orDuration turns 0 into the default and a negative value into 0.
func orDuration(d, def time.Duration) time.Duration {
	return max(cmp.Or(d, def), 0)
}

package iwarp

import (
	"net"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// agreement is what the two ends of a connection have agreed on.
type agreement struct {
	crc               bool
	markersIn         bool // in the stream that this end receives
	markersOut        bool
	extended          bool // the peer is of this package, and speaks RFC 7306
	asked             bool // this end has asked for the connection
	tagged, untagged  int  // most payload of an FPDU, bytes
	readsIn, readsOut int
}

// terms are what this end brings to an agreement.
type terms struct {
	set  *settings
	cfg  *hw.QPConfig
	conn net.Conn
}

func (c *connection) terms() terms { return terms{&c.dev.set, &c.qp.Cfg, c.conn} }

// offer is the enhanced data of a request: what the queue pair offers. Its bits name
// kinds of ready-to-receive. No implementation asks for a send as one, so the bit for a
// send, together with the bit for big FPDUs, tells a peer of this package that this end
// speaks RFC 7306.
//
// The bit for the peer-to-peer model promises the peer a ready-to-receive. The kernel
// of a Linux peer stops when the promise is broken (doc.go): siw reports a connection when its
// ready-to-receive comes, and if the connection closes before that, cm_close_handler
// finds a state that it takes for impossible. An initiator that is killed breaks the promise, and
// so does a ready-to-receive that comes before siw has taken over the socket. Without the promise
// siw reports the connection at once.
func (t terms) offer() wire.EnhancedData {
	set, cfg := t.set, t.cfg
	return wire.EnhancedData{
		PeerToPeer: set.peer2peer,
		SendRTR:    set.big && set.extensions,
		WriteRTR:   true,
		ReadRTR:    cfg.ReadsOut > 0,
		IRD:        uint16(cfg.ReadsIn),
		ORD:        uint16(cfg.ReadsOut),
	}
}

// atMost is this end's depth of reads, bounded by the depth that the peer states.
func atMost(own int, peers uint16) int {
	if peers == wire.NotNegotiated {
		return own
	}
	return min(own, int(peers))
}

// requestFrame is the frame that asks for a connection.
func (t terms) requestFrame(revision int, private []byte) wire.MPARequest {
	set := t.set
	return wire.MPARequest{
		Revision: uint8(revision), Markers: set.markers, CRC: set.crc, BigFPDU: set.big,
		Enhanced: revision == wire.MPARevision2, Data: t.offer(), Private: private,
	}
}

// agree returns what the two ends agree on by this end's request and the peer's reply,
// and which ready-to-receive is due, if one is.
func (t terms) agree(req *wire.MPARequest, reply *wire.MPAReply) (a agreement, rtr wire.Opcode, due bool, err error) {
	if reply.Revision != req.Revision || reply.Enhanced != req.Enhanced {
		return a, 0, false, wire.ErrMPAMode
	}
	cfg := t.cfg
	a = agreement{
		asked: true, crc: req.CRC || reply.CRC, markersIn: req.Markers, markersOut: reply.Markers,
		readsIn: cfg.ReadsIn, readsOut: cfg.ReadsOut,
	}
	t.fit(&a, req.BigFPDU && reply.BigFPDU)
	if !reply.Enhanced {
		return a, 0, false, nil
	}
	d := &reply.Data
	a.extended = req.Data.SendRTR && d.SendRTR && reply.BigFPDU
	a.readsOut = atMost(cfg.ReadsOut, d.IRD)
	if d.ORD != wire.NotNegotiated {
		if int(d.ORD) > cfg.ReadsIn {
			return a, 0, false, wire.ErrMPAIRD
		}
		a.readsIn = int(d.ORD)
	}
	switch promised := req.Data.PeerToPeer && d.PeerToPeer; {
	case promised && d.WriteRTR, !promised && a.extended:
		return a, wire.OpWrite, true, nil
	case promised && d.ReadRTR && req.Data.ReadRTR:
		return a, wire.OpReadRequest, true, nil
	case promised:
		return a, 0, false, wire.ErrMPARTR
	}
	return a, 0, false, nil
}

// answer returns this end's reply to a request, and what the ends agree on by the two.
// await says that the initiator sends an FPDU first: it has promised that, or is of this
// package.
func (t terms) answer(req *wire.MPARequest, private []byte) (a agreement, reply wire.MPAReply, await bool, err error) {
	set, cfg := t.set, t.cfg
	a = agreement{
		crc: req.CRC || set.crc, markersIn: set.markers, markersOut: req.Markers,
		readsIn: cfg.ReadsIn, readsOut: cfg.ReadsOut,
	}
	reply = wire.MPAReply{
		Revision: req.Revision, Markers: set.markers, CRC: a.crc, BigFPDU: req.BigFPDU && set.big,
		Enhanced: req.Enhanced, Private: private,
	}
	t.fit(&a, reply.BigFPDU)
	if !req.Enhanced {
		return a, reply, false, nil
	}
	d := &req.Data
	a.readsOut = atMost(cfg.ReadsOut, d.IRD)
	a.readsIn = atMost(cfg.ReadsIn, d.ORD)
	reply.Data = wire.EnhancedData{IRD: uint16(a.readsIn), ORD: uint16(a.readsOut)}
	if d.PeerToPeer {
		reply.Data.PeerToPeer = true
		reply.Data.WriteRTR = d.WriteRTR
		reply.Data.ReadRTR = d.ReadRTR && !d.WriteRTR
		if !d.WriteRTR && !d.ReadRTR {
			return a, reply, false, wire.ErrMPARTR
		}
	}
	a.extended = d.SendRTR && reply.BigFPDU && set.extensions
	reply.Data.SendRTR = a.extended
	return a, reply, d.PeerToPeer || a.extended, nil
}

// fit chooses the length of FPDUs: a TCP segment, unless the peer takes longer ones. It
// makes payloads multiples of 4, so that only a message's last FPDU has a pad.
func (t terms) fit(a *agreement, big bool) {
	set := t.set
	mulpdu := 0
	switch {
	case set.fpdu != 0:
		mulpdu = min(max(set.fpdu-wire.FPDUOverhead, wire.MinMULPDU), wire.MaxULPDU)
	case big:
		mulpdu = wire.MaxULPDU
	default:
		mss := 0
		if tcp, ok := t.conn.(*net.TCPConn); ok {
			mss = segmentSize(tcp)
		}
		if mss == 0 {
			mss = defaultMSS
		}
		mulpdu = wire.MULPDU(mss, a.markersOut)
	}
	a.tagged = (mulpdu - wire.TaggedHeaderSize) &^ 3
	a.untagged = (mulpdu - wire.UntaggedHeaderSize) &^ 3
}

// defaultMSS is the segment size on Ethernet, with IPv6 and timestamps, in bytes.
const defaultMSS = 1428

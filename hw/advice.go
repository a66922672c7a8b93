package hw

import (
	"errors"
	"syscall"
)

// What a program can mend when a connection ended so.
const (
	adviseReceives   = "the receiver had no receive posted: see whether its program takes its events; if it does, give both ends one ConnConfig.Depth, or release its messages"
	adviseLength     = "the message is longer than the receive: give both ends one ConnConfig.Message"
	adviseKey        = "the key is of no region of the connection's zone, or of one that was freed, or its privileges have no RemoteWrite"
	adviseAccess     = "the key is of no region of the connection's zone, or of one that was freed, or its range or privileges (RemoteRead, RemoteWrite) do not allow it"
	adviseBounds     = "the range is not within the region that was registered: name it by LMR.Remote"
	adviseResponder  = "the message is longer than the receive (ConnConfig.Message), or an atomic's address is no multiple of 8"
	adviseRequest    = "more reads than Endpoint.Reads allows, or an atomic whose address is no multiple of 8"
	adviseNoListener = "nothing listens there: start the server, or look at the port"
)

// byStatus and byTerminate have what to do about causes whose own words name the symptom alone.
var (
	byStatus = map[Status]string{
		StatusReceiverNotReady: adviseReceives, StatusLocalLength: adviseLength,
		StatusRemoteAccess: adviseAccess, StatusRemoteResponder: adviseResponder,
	}
	byTerminate = map[int]string{ // RFC 5040, RFC 5041
		0x1202: adviseReceives, 0x1205: adviseLength,
		0x1100: adviseKey, 0x1101: adviseBounds, 0x1102: adviseKey,
		0x0100: adviseAccess, 0x0101: adviseBounds, 0x0102: adviseAccess, 0x0103: adviseAccess,
		0x0207: adviseRequest,
	}
)

// advice is what the program can do about the cause; empty where its words say all.
func (c *Cause) advice() string {
	switch c.Layer {
	case LayerDAT:
		return byStatus[Status(c.Code)]
	case LayerDDP, LayerRDMAP:
		return byTerminate[c.Code]
	case LayerTCP:
		if errors.Is(c.Err, syscall.ECONNREFUSED) {
			return adviseNoListener
		}
	case LayerMPA, LayerVerbs: // their words say all
	}
	return ""
}

package ep

import (
	"godat/hw"
	"godat/mem"
)

// AddressHandle names the receiver of a datagram: DAT_IB_ADDR_HANDLE. No call returns one,
// since all endpoints are reliable connections.
type AddressHandle struct{ _ byte }

// PostSendUD would send a datagram. It returns MODEL_NOT_SUPPORTED, as NewEndpoint
// does for service type UnreliableDatagram.
// It answers to dat_ib_post_send_ud.
func (e *Endpoint) PostSendUD(_ uint64, _ hw.Flags, _ *AddressHandle, _ ...mem.Segment) error {
	return noDatagrams("ep.PostSendUD", e)
}

// FreeUDConnection would free what a connection request has left to a datagram
// endpoint. It returns MODEL_NOT_SUPPORTED.
// It answers to dat_ib_ud_cm_free.
func (e *Endpoint) FreeUDConnection(uint64) error { return noDatagrams("ep.FreeUDConnection", e) }

// FreeAddressHandle would free an address handle. It returns MODEL_NOT_SUPPORTED.
// It answers to dat_ib_ud_ah_free.
func (e *Endpoint) FreeAddressHandle(*AddressHandle) error {
	return noDatagrams("ep.FreeAddressHandle", e)
}

func noDatagrams(op string, e *Endpoint) error {
	if err := alive(op, e); err != nil {
		return err
	}
	return hw.Errorf(op, hw.ModelNotSupported, hw.NoSubtype, "datagrams on %s", e.adapter.attr.Device)
}

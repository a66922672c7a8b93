package runtime

import "godat/hw"

// ExtendedOp is the number of an operation of an extension: DAT_EXTENDED_OP. Those
// of the InfiniBand extension are DAT_IB_OP.
type ExtendedOp uint32

// extended names the method that does an operation of the InfiniBand extension.
var extended = map[ExtendedOp]string{
	0:      "ep.Endpoint.PostFetchAdd",
	1:      "ep.Endpoint.PostCompareSwap",
	2:      "ep.Endpoint.PostRDMAWriteImmediate",
	3:      "ep.Endpoint.PostSendUD",
	4:      "Counters of the object",
	5:      "Counters of the object, and fmt,",
	28:     "ep.Endpoint.FreeUDConnection",
	29:     "ep.Endpoint.FreeAddressHandle",
	0x1000: "runtime.Describe",
	0x2000: "runtime.Describe",
}

// ExtensionOp is NOT_IMPLEMENTED for every operation: the operations of extensions are
// methods of their own, and the error's text names the method if there is one.
// Collective operations, and counters that a device samples, have no method. A closed
// adapter is INVALID_HANDLE/IA. It answers to dat_extension_op, and so to
// dat_ib_start_counter and dat_ib_stop_counter.
func (ia *IA) ExtensionOp(_ any, op ExtendedOp, _ ...any) error {
	const call = "runtime.IA.ExtensionOp"
	if err := ia.enter(call); err != nil {
		return err
	}
	defer ia.gate.RUnlock()
	if method := extended[op]; method != "" {
		return hw.Errorf(call, hw.NotImplemented, hw.NoSubtype, "operation %#x; %s does it", uint32(op), method)
	}
	return hw.Errorf(call, hw.NotImplemented, hw.NoSubtype, "operation %#x", uint32(op))
}

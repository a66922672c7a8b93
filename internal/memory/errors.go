package memory

import (
	"errors"
	"fmt"
	"math"
	"syscall"

	"godat/hw"
)

// Refused turns a device's error into that of the call op: a return code stays as
// it is, and lack of memory is INSUFFICIENT_RESOURCES with the subtype sub.
func Refused(op string, sub hw.Subtype, err error) error {
	var code *hw.Error
	if errors.As(err, &code) {
		return hw.Errorf(op, code.Type, code.Sub, "%w", err)
	}
	if errors.Is(err, syscall.ENOMEM) || errors.Is(err, syscall.EAGAIN) {
		return hw.Errorf(op, hw.InsufficientResources, sub, "%w", err)
	}
	return hw.Errorf(op, hw.InternalError, hw.NoSubtype, "%w", err)
}

// Outside says why a range is not within the region.
func (r *Region) Outside(addr uint64, n uint32) string {
	if addr == math.MaxUint64 {
		return fmt.Sprintf("a negative length, or one over 32 bits; the region has %d bytes", r.Size)
	}
	return fmt.Sprintf("offset %d, length %d is not within the region of %d bytes", int64(addr-r.Base), n, r.Size)
}

func protection(need hw.Privileges) hw.Subtype {
	switch {
	case need&hw.LocalRead != 0:
		return hw.ProtectionRead
	case need&hw.LocalWrite != 0:
		return hw.ProtectionWrite
	case need&hw.RemoteRead != 0:
		return hw.ProtectionRDMARead
	case need&(hw.RemoteWrite|hw.RemoteAtomic) != 0:
		return hw.ProtectionRDMAWrite
	}
	return hw.NoSubtype
}

func privilege(need hw.Privileges) hw.Subtype {
	if sub := protection(need); sub != hw.NoSubtype {
		return sub - hw.ProtectionRead + hw.PrivilegesRead
	}
	return hw.NoSubtype
}

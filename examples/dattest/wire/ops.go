package wire

import (
	"errors"
	"fmt"
	"strconv"
)

// ParseOps reads operations in the form of a command line: client|server SR|RR|RW [size
// [segments]] [-f].
func ParseOps(args []string) (ops []Op, err error) {
	for len(args) > 0 {
		side := args[0]
		if side != "client" && side != "server" {
			return nil, fmt.Errorf("an operation begins with client or server, not %q", side)
		}
		var op Op
		if op, args, err = ParseTransfer(args[1:]); err != nil {
			return nil, err
		}
		op.Server = side == "server"
		if len(args) > 0 && args[0] == "-f" {
			if op.Transfer != SendRecv {
				return nil, errors.New("-f is for SR only")
			}
			op.ReapOnRecv, args = true, args[1:]
		}
		ops = append(ops, op)
	}
	return ops, nil
}

// ParseTransfer reads one transfer, and returns the words after it.
func ParseTransfer(args []string) (op Op, rest []string, err error) {
	if len(args) == 0 {
		return op, nil, errors.New("an operation lacks its transfer: SR, RR or RW")
	}
	transfers := map[string]Transfer{"SR": SendRecv, "RR": RDMARead, "RW": RDMAWrite}
	t, known := transfers[args[0]]
	if !known {
		return op, nil, fmt.Errorf("transfer %q is not SR, RR or RW", args[0])
	}
	op = Op{Transfer: t, Size: 4096, Segments: 1}
	args = args[1:]
	for _, to := range []*uint32{&op.Size, &op.Segments} {
		if len(args) == 0 || args[0][0] < '0' || args[0][0] > '9' {
			break
		}
		n, err := strconv.ParseUint(args[0], 10, 31)
		if err != nil {
			return op, nil, fmt.Errorf("size or segments: %w", err)
		}
		*to, args = uint32(n), args[1:]
	}
	return op, args, nil
}

package rpc

import (
	"errors"

	dat "godat/runtime"
)

// lend registers memory for the time of do, which gets nil for memory without a byte.
func lend(pz *dat.PZ, memory []byte, rights dat.Privileges, do func(m *dat.LMR) error) error {
	if len(memory) == 0 {
		return do(nil)
	}
	m, err := pz.Register(memory, rights)
	if err != nil {
		return err
	}
	err = do(m)
	if freed := m.Free(); freed != nil {
		err = errors.Join(err, freed)
	}
	return err
}

// segment is all of a region, or none of it.
func segment(m *dat.LMR, n int) dat.Segment {
	if m == nil {
		return dat.Segment{}
	}
	return m.Segment(0, n)
}

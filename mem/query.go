package mem

import (
	"godat/hw"
	"godat/internal/door"
)

// LMRParam describes a region: DAT_LMR_PARAM. Of which memory, and under which contexts, its methods say.
type LMRParam struct {
	From       *LMR     // the region whose memory it is, of [PZ.RegisterLMR]; nil for none
	Shared     SharedID // of the memory, of [PZ.RegisterShared]; zero for none
	Privileges hw.Privileges
}

// Query describes the region. A freed region is INVALID_HANDLE/LMR. It answers to
// dat_lmr_query.
func (l *LMR) Query() (LMRParam, error) {
	if !l.alive() {
		return LMRParam{}, deadLMR("mem.LMR.Query")
	}
	return LMRParam{From: l.from, Shared: l.shared, Privileges: l.priv}, nil
}

// Home returns the adapter. Package runtime calls it.
func (l *LMR) Home(door.Key) (ia any, err error) {
	if !l.alive() {
		return nil, deadLMR("runtime.IAOf")
	}
	return l.pz.domain.ia, nil
}

func (l *LMR) alive() bool { return l != nil && l.pz != nil && !l.dead.Load() }

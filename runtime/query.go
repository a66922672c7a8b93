package runtime

import (
	"godat/evd"
	"godat/hw"
)

// Param is what [IA.Query] returns.
type Param struct {
	Async *evd.Dispatcher // of asynchronous errors; nil for none
	Attr  hw.Attr         // of the adapter and of its provider
}

// Query reports the attributes of the adapter and of its provider. datapi.md has DAT's name of each,
// and the answer of those that have but one. A closed adapter is INVALID_HANDLE/IA. It answers to dat_ia_query.
func (ia *IA) Query() (Param, error) {
	if err := ia.enter("runtime.IA.Query"); err != nil {
		return Param{}, err
	}
	defer ia.gate.RUnlock()
	return Param{Async: ia.async.to, Attr: ia.attr}, nil
}

package runtime

import "godat/evd"

// NewCNO makes a consumer notification object, on which a program waits for many
// dispatchers at once. Its agents run in the adapter's pool of upcalls unless cfg says
// otherwise. Errors are those of [evd.NewCNO]. It answers to dat_cno_create and
// dat_cno_fd_create.
func (ia *IA) NewCNO(cfg CNOConfig) (*CNO, error) {
	if err := ia.enter("runtime.NewCNO"); err != nil {
		return nil, err
	}
	defer ia.gate.RUnlock()
	if cfg.Submit == nil {
		cfg.Submit = ia.pool.upcall
	}
	cfg.IA = ia
	c, err := evd.NewCNO(cfg)
	if err != nil {
		return nil, err
	}
	ia.lists.mu.Lock()
	defer ia.lists.mu.Unlock()
	ia.lists.cnos.add(c)
	return c, nil
}

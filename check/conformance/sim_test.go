package conformance

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"godat/hw"
	"godat/hw/hwtest"
)

// sim opens simulated devices, whose completions must be polled, and remembers
// them.
type sim struct {
	*hwtest.Sim
	mu   sync.Mutex
	devs []*hwtest.SimDevice
}

func newSim() *sim { return &sim{Sim: hwtest.NewSim(hwtest.SimConfig{Seed: 1})} }

func (s *sim) Open(cfg hw.OpenConfig) (hw.Device, error) {
	dev, err := s.Sim.Open(cfg)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.devs = append(s.devs, dev.(*hwtest.SimDevice))
	}
	return dev, err
}

// kept requires that the library kept the contract with the devices.
func (s *sim) kept(t testing.TB) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.devs {
		assert.Empty(t, d.Violations())
		assert.Zero(t, d.Overruns())
	}
	s.devs = nil
}

package hwtest

import (
	"runtime"
	"sync/atomic"

	"godat/hw"
)

// pump is the poller of a polled device. It runs the loop of hw.Polled's documentation
// and hands each completion to the end that its id names.
type pump struct {
	host *host
	dev  hw.Polled
	stop atomic.Bool
	done chan struct{}
	wcs  [16]hw.WC
}

// pumpSpins is the most empty polls in a row that the pump makes before it arms the
// device.
const pumpSpins = 4

// run waits by Wait, on a locked thread.
func (p *pump) run() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p.loop(p.dev.Wait)
}

// sleep waits by Sleep.
func (p *pump) sleep(s hw.Sleeper) { p.loop(s.Sleep) }

func (p *pump) loop(wait func() error) {
	defer close(p.done)
	for !p.stop.Load() {
		for idle := 0; idle < pumpSpins; idle++ {
			if p.poll() > 0 {
				idle = 0
			}
		}
		if err := p.dev.Arm(); err != nil {
			p.host.violate("Arm: " + err.Error())
			return
		}
		if p.poll() > 0 {
			continue
		}
		if err := wait(); err != nil {
			p.host.violate("Wait: " + err.Error())
			return
		}
	}
}

// poll polls one batch and routes it. It returns the number of completions.
func (p *pump) poll() int {
	n := p.dev.Poll(p.wcs[:])
	for _, wc := range p.wcs[:n] {
		p.host.route(wc)
	}
	clear(p.wcs[:])
	return n
}

// end stops the pump and waits for its goroutine.
func (p *pump) end() {
	p.stop.Store(true)
	p.dev.Wake()
	<-p.done
}

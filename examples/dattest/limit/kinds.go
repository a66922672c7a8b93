package limit

import (
	"cmp"
	"errors"
	"fmt"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/mem"
	dat "godat/runtime"
)

const bufferSize = 4096

func limitIA(b *bench) (string, error) {
	return b.count("IAs opened", func() error {
		ia, err := dat.Open(b.ctx, b.cfg.Provider, b.cfg.Options...)
		if err == nil {
			b.keep(ia.CloseGraceful)
		}
		return err
	})
}

func limitPZ(b *bench) (string, error) {
	return b.count("PZs created", func() error { _, err := b.pz(); return err })
}

func limitCNO(b *bench) (string, error) {
	return b.count("CNOs created", func() error {
		c, err := b.ia.NewCNO(evd.CNOConfig{})
		if err == nil {
			b.keep(c.Close)
		}
		return err
	})
}

func limitEVD(b *bench) (string, error) {
	return b.count("EVDs created", func() error { _, err := b.evd(); return err })
}

func limitEP(b *bench) (string, error) {
	another, err := b.endpoints()
	if err != nil {
		return "", err
	}
	return b.count("EPs created", func() error { _, err := another(); return err })
}

func limitRSP(b *bench) (string, error) {
	another, err := b.endpoints()
	if err != nil {
		return "", err
	}
	evd, err := b.evd()
	if err != nil {
		return "", err
	}
	return b.count("RSPs created", func() error {
		e, err := another()
		if err != nil {
			return err
		}
		r, err := b.ia.NewRSP(ep.RSPConfig{Endpoint: e, Dispatcher: evd})
		if err == nil {
			b.keep(r.Close)
		}
		return err
	})
}

func limitPSP(b *bench) (string, error) {
	evd, err := b.evd()
	if err != nil {
		return "", err
	}
	return b.count("PSPs created", func() error {
		p, err := b.ia.NewPSP(ep.PSPConfig{Dispatcher: evd})
		if err == nil {
			b.keep(p.Close)
		}
		return err
	})
}

func limitLMR(b *bench) (string, error) {
	pz, err := b.pz()
	if err != nil {
		return "", err
	}
	return b.count("LMRs created", func() error { _, err := b.lmr(pz, bufferSize); return err })
}

// limitRecv posts receives until the endpoint has as many as it says it has room for.
func limitRecv(b *bench) (string, error) {
	pz, err := b.pz()
	if err != nil {
		return "", err
	}
	lmr, err := b.lmr(pz, bufferSize)
	if err != nil {
		return "", err
	}
	evd, err := b.evd()
	if err != nil {
		return "", err
	}
	e, err := b.endpoint(pz, evd)
	if err != nil {
		return "", err
	}
	q, err := e.Query()
	if err != nil {
		return "", err
	}
	n, err := b.exhaust(2*evdLength, func() error { return e.PostRecv(0, hw.Default, lmr.Segment(0, bufferSize)) })
	if err == nil && n != q.Attr.MaxRecvDTOs {
		err = fmt.Errorf("%d receives were taken, and %d are allowed", n, q.Attr.MaxRecvDTOs)
	}
	return fmt.Sprintf("recv buffers posted per EP: %d", n), errors.Join(err, e.Reset())
}

// limitSize registers ever larger regions, up to Config.Largest: other programs use the
// machine's memory, too.
func limitSize(b *bench) (string, error) {
	largest := cmp.Or(b.cfg.Largest, 1<<30)
	pz, err := b.pz()
	if err != nil {
		return "", err
	}
	for size := bufferSize; ; size *= 2 {
		lmr, err := pz.Alloc(size, hw.AllPrivileges, mem.WithUnmapOnFree())
		if errors.Is(err, hw.ErrInsufficientResources) || errors.Is(err, hw.ErrLength) {
			return fmt.Sprintf("Largest LMR was %#x bytes (failed attempting %#x bytes)", size/2, size), nil
		}
		if err == nil {
			err = lmr.Free()
		}
		if err != nil {
			return "", fmt.Errorf("%#x bytes: %w", size, err)
		}
		if size == largest {
			return fmt.Sprintf("LMR of %#x bytes OK - stopping now.", size), nil
		}
	}
}

func (b *bench) pz() (*mem.PZ, error) {
	pz, err := b.ia.NewPZ()
	if err == nil {
		b.keep(pz.Close)
	}
	return pz, err
}

const evdLength = 64

func (b *bench) evd() (*evd.Dispatcher, error) {
	d, err := b.ia.NewDispatcher(evd.Config{QLen: evdLength})
	if err == nil {
		b.keep(d.Close)
	}
	return d, err
}

func (b *bench) lmr(pz *mem.PZ, size int) (*mem.LMR, error) {
	l, err := pz.Alloc(size, hw.AllPrivileges, mem.WithUnmapOnFree())
	if err == nil {
		b.keep(l.Free)
	}
	return l, err
}

// endpoints makes what endpoints need, and returns a function that makes an endpoint.
func (b *bench) endpoints() (func() (*ep.Endpoint, error), error) {
	pz, err := b.pz()
	if err != nil {
		return nil, err
	}
	evd, err := b.evd()
	if err != nil {
		return nil, err
	}
	return func() (*ep.Endpoint, error) { return b.endpoint(pz, evd) }, nil
}

func (b *bench) endpoint(pz *mem.PZ, evd *evd.Dispatcher) (*ep.Endpoint, error) {
	e, err := b.ia.NewEndpoint(ep.Config{PZ: pz, Recv: evd, Request: evd, Conn: evd})
	if err == nil {
		b.keep(e.Close)
	}
	return e, err
}

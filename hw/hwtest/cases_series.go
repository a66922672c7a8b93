package hwtest

import (
	"errors"

	"godat/hw"
)

// seriesCases are about requests that complete together. Each one completes though nothing
// follows, whatever they are and in whatever order. The sinks of a suite with Runs keep all
// that they may keep.
var seriesCases = []contractCase{
	{"three requests that complete together all complete", func(r *rig) {
		s := newSeries(r)
		for _, first := range s.kinds {
			for _, second := range s.kinds {
				for _, third := range s.kinds {
					r.must.NoError(s.succeed(first, second, third))
				}
			}
		}
	}},
	{"one that fails completes, and so do those before it", func(r *rig) {
		fails := seriesKind{"failing", func(*series) hw.SendWR {
			return hw.SendWR{Op: hw.OpSend, Flags: hw.WRSignaled, SGL: []hw.SGE{nowhere}}
		}, false}
		for _, first := range newSeries(r).kinds {
			s := newSeries(r)
			for _, second := range s.kinds {
				_, err := s.complete(first, second, fails)
				r.must.NoError(err)
				s.a.over()
				s.b.over()
				s.a.reset()
				s.b.reset()
				r.join(s.a, s.b)
			}
		}
	}},
}

// seriesKind is a kind of requests that complete in a way of their own, at either end.
type seriesKind struct {
	name     string
	request  func(s *series) hw.SendWR
	receives bool // it takes a receive
}

// seriesLarge is a length at which a sink may hand on what it keeps, before the series ends.
const seriesLarge = 64 << 10

var seriesKinds = []seriesKind{
	{"small write", func(s *series) hw.SendWR { return writeTo(s.dst, 0, s.src.sge(0, 8)) }, false},
	{"silent write", func(s *series) hw.SendWR {
		wr := writeTo(s.dst, 0, s.src.sge(0, 8))
		wr.Flags = 0
		return wr
	}, false},
	{"large read", func(s *series) hw.SendWR { return readFrom(s.far, 0, s.near.all()) }, false},
	{"send", func(s *series) hw.SendWR { return sendOf(s.src.sge(0, 8)) }, true},
	{"large send", func(s *series) hw.SendWR { return sendOf(s.src.all()) }, true},
	{"solicited send", func(s *series) hw.SendWR {
		wr := sendOf(s.src.sge(0, 8))
		wr.Flags |= hw.WRSolicited
		return wr
	}, true},
	{"invalidating send", func(s *series) hw.SendWR {
		g := s.rig.b.mem(8, hw.AllPrivileges)
		s.exposed = append(s.exposed, g)
		return hw.SendWR{Op: hw.OpSendInvalidate, Flags: hw.WRSignaled, Imm: g.mr.RKey(), SGL: []hw.SGE{s.src.sge(0, 8)}}
	}, true},
	{"write with immediate data", func(s *series) hw.SendWR { return rdma(hw.OpWriteImm, s.dst, 0, s.src.sge(0, 8)) }, true},
	{"atomic", func(s *series) hw.SendWR { return rdma(hw.OpFetchAdd, s.dst, 0, s.near.sge(0, 8)) }, false},
}

// series is two connected ends, the first of which posts requests together.
type series struct {
	rig      *rig
	kinds    []seriesKind // those that both ends have
	a, b     *end
	src, dst *region
	// What reads and atomics bring goes to near, and reads take it from far: a request behind a
	// read may be executed before the read has ended.
	near, far *region
	exposed   []*region // the regions whose keys requests invalidate
}

func newSeries(r *rig) *series {
	priv := hw.AllPrivileges
	if r.has(hw.OpFetchAdd) {
		priv |= hw.RemoteAtomic
	}
	s := &series{
		rig: r, src: r.a.mem(seriesLarge, hw.AllPrivileges), dst: r.b.mem(seriesLarge, priv),
		near: r.a.mem(seriesLarge, hw.AllPrivileges), far: r.b.mem(seriesLarge, hw.AllPrivileges),
	}
	s.a, s.b = r.pair()
	for _, k := range seriesKinds {
		op := k.request(s).Op
		if op == hw.OpSendInvalidate && !r.has(hw.OpRecvInvalidate) || !r.has(op) {
			continue
		}
		if err := s.succeed(k); errors.Is(err, errors.ErrUnsupported) {
			r.tb.Logf("the two ends did not agree on a %s: %v", k.name, err)
			continue
		}
		s.kinds = append(s.kinds, k)
	}
	return s
}

// succeed is complete of requests that succeed, and so do their receives.
func (s *series) succeed(kinds ...seriesKind) error {
	wcs, err := s.complete(kinds...)
	for _, wc := range wcs {
		s.rig.must.Equal(hw.StatusSuccess, wc.Status, "%v", kinds)
	}
	return err
}

func (k seriesKind) String() string { return k.name }

// complete posts a request of each kind, all in one call, and waits until all that are signaled
// and their receives have completed. It returns the error of a single request, with which the
// two ends did not agree on it.
func (s *series) complete(kinds ...seriesKind) (wcs []hw.WC, err error) {
	defer func() {
		s.rig.free(s.exposed...)
		s.exposed = s.exposed[:0]
	}()
	var (
		wrs []hw.SendWR
		in  []int
	)
	for _, k := range kinds {
		wrs = append(wrs, k.request(s))
		if k.receives {
			in = append(in, s.b.recv(s.dst.all()))
		}
	}
	first, _, err := s.a.tryPost(wrs...)
	if err != nil && len(wrs) == 1 {
		return nil, err
	}
	s.rig.must.NoError(err)
	for i := range wrs {
		if wrs[i].Flags&hw.WRSignaled != 0 {
			wcs = append(wcs, s.a.sent(first+i))
		}
	}
	for _, i := range in {
		wcs = append(wcs, s.b.received(i))
	}
	return wcs, nil
}

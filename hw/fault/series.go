package fault

import "godat/hw"

// The manners in which a provider may complete a plain success; see hw.SeriesSink.
const (
	inArray = iota
	alone
	withMore // twice as often as the others
)

// handOn hands completions on: in one array or, with Config.Series, each in a manner that the
// seed and the completion's number on its queue pick. It ends the series that it begins.
func (s *queue) handOn(wcs []hw.WC) {
	f := s.qp.dev.fault
	series, ok := s.sink.(hw.SeriesSink)
	if !ok || !f.cfg.Series {
		s.sink.Complete(wcs)
		return
	}
	open := false // a series
	for i := range wcs {
		wc := &wcs[i]
		s.handed++
		manner := inArray
		if wc.Status == hw.StatusSuccess && wc.Op <= hw.OpRecv && wc.Flags&^hw.WCSolicited == 0 && wc.QP == 0 {
			manner = int(mix(f.cfg.Seed, s.handed<<1|uint64(s.dir)) % 4)
		}
		switch manner {
		case inArray:
			s.sink.Complete(wcs[i : i+1])
		case alone:
			series.CompleteOne(wc.ID, wc.Op, wc.Len, wc.Flags)
		default:
			series.CompleteOne(wc.ID, wc.Op, wc.Len, wc.Flags|hw.WCMore)
		}
		open = manner >= withMore
	}
	if open {
		series.Flush()
	}
}

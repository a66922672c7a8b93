package inspect

import (
	"cmp"
	"slices"
)

// elsewhere adds the troubles of a process's other adapters to a page, so that none says that all is well while another
// one knows better. It reports whether it is a first look at one of these.
func (h *Handler) elsewhere(p *page, here int) (first bool) {
	p.Troubles = slices.Clone(p.Troubles) // of a snapshot that others read
	for i, a := range h.adapters {
		if i == here {
			continue
		}
		s, err := a.look()
		if err != nil { // it is closed, as its own page says
			continue
		}
		first = first || s.First
		for _, t := range s.Troubles {
			if t.Show == "" { // of the process, as a line that is there
				continue
			}
			t.Head, t.adapter = a.label+", "+cmp.Or(t.Head, t.Name), i+1
			at := slices.IndexFunc(p.Troubles, func(other trouble) bool { return byRank(other, t) > 0 })
			if at < 0 {
				at = len(p.Troubles)
			}
			p.Troubles = slices.Insert(p.Troubles, at, t)
		}
	}
	causesFirst(p.Troubles)
	var peers []string
	for _, t := range p.Troubles {
		peers = append(peers, t.peers...)
	}
	p.Troubles = slices.DeleteFunc(p.Troubles, func(t trouble) bool { return t.isOf(peers) })
	return first
}

package report

import "fmt"

// Unable says why the machine could not answer; it is empty if it could.
func (r *Report) Unable() string {
	kept, dropped := r.turns()
	tried, lost := 0, 0
	for i := range r.Rows {
		if row := &r.Rows[i]; row.Kept+row.Dropped > 0 {
			tried++
			if row.Refused != "" {
				lost++
			}
		}
	}
	agree, _ := r.agreement()
	switch {
	case kept+dropped == 0:
		return "nothing could be measured"
	case 2*dropped > kept+dropped:
		return fmt.Sprintf("something else used the processors during %d of %d turns", dropped, kept+dropped)
	case 2*lost > tried:
		return fmt.Sprintf("something else used the processors, and left %d of %d rows without figures", lost, tried)
	case agree == 0 && r.short():
		return "its turns had too few messages for a median: a longer --duration has more"
	case agree == 0:
		return "in no row do the repeats agree"
	}
	return ""
}

// short reports whether no row has what the report is about, and some for want of messages alone, as over a
// slow link.
func (r *Report) short() bool {
	few := false
	for i := range r.Rows {
		row := &r.Rows[i]
		if _, _, ok := r.subject(row); ok {
			return false
		}
		few = few || row.Refused == "" && row.Kept > 0 && !row.Saturated
	}
	return few
}

// Verdict says whether the machine could answer: the first that a reader must know.
func (r *Report) Verdict() string {
	if why := r.Unable(); why != "" {
		return "This machine could not answer: " + why + "."
	}
	kept, dropped := r.turns()
	agree, rows := r.agreement()
	return fmt.Sprintf("This machine could answer: %d of %d turns were undisturbed. The repeats agree in %d of %d rows; the others are named below their tables.", kept, kept+dropped, agree, rows)
}

// agreement is in how many rows the repeats agree on what the report is about, of those that have it.
func (r *Report) agreement() (agree, rows int) {
	for i := range r.Rows {
		if e, _, ok := r.subject(&r.Rows[i]); ok {
			rows++
			if e.Steady() {
				agree++
			}
		}
	}
	return agree, rows
}

// turns are the repeats of all rows that count, and those that something disturbed.
func (r *Report) turns() (kept, dropped int) {
	for i := range r.Rows {
		kept, dropped = kept+r.Rows[i].Kept, dropped+r.Rows[i].Dropped
	}
	return kept, dropped
}

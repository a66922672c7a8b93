package inspect

import (
	"errors"
	"net/http"
)

var (
	errNotLet  = errors.New("the program lets no visitor do that")
	errNothing = errors.New("a POST begins or ends that requests are measured, or a trace")
)

// post does what a visitor asks for, and leads back to the page.
func (h *Handler) post(w http.ResponseWriter, r *http.Request, q query) {
	code, err := http.StatusForbidden, h.same.Check(r)
	if err == nil {
		code, err = h.do(q)
	}
	if err != nil {
		http.Error(w, err.Error(), code)
		return
	}
	w.Header().Set("Location", q.with()) // relative: no handler knows where it is mounted
	w.WriteHeader(http.StatusSeeOther)
}

// do begins or ends what a query is for. With an error it returns the status that says its kind.
func (h *Handler) do(q query) (code int, err error) {
	a := h.adapters[q.adapter]
	switch {
	case q.measure < 0 && q.trace != "start" && q.trace != "stop":
		return http.StatusBadRequest, errNothing
	case q.measure >= 0 && !h.letsMeasure, q.measure < 0 && h.traces.dir == "":
		return http.StatusForbidden, errNotLet
	case q.measure >= 0:
		return http.StatusServiceUnavailable, a.measureFor(q.measure)
	case q.trace == "stop":
		if t := h.traces.of(q); t != nil {
			t.end()
		}
		return 0, nil
	}
	s, err := a.look()
	if err != nil {
		return http.StatusServiceUnavailable, err
	}
	if story := findStory(s, q.of); story != nil {
		if e := story.endpoint(); e != nil {
			return http.StatusConflict, h.traces.begin(e.Endpoint, q)
		}
	}
	return http.StatusNotFound, errNotHere
}

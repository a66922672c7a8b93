package ep

import "sync/atomic"

// The numbers of handles: each has the next one of its kind in this process, from 1 on, so that a line of a
// log, a trouble and a row of a table are of the same handle. One that nothing made has 0.
var endpoints, points, requests, srqs, outboxes atomic.Uint64

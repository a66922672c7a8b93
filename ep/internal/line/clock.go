package line

import "time"

// began is when the process began, or little later.
var began = time.Now()

// Clock is the time, in nanoseconds. It is not 0.
func Clock() int64 { return int64(time.Since(began)) | 1 }

package inspect

import "godat/runtime/internal/thresholds"

// Late is for how long an operation, event, callback or call may wait before it is a trouble.
const Late = thresholds.Late

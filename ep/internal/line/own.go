package line

import (
	"godat/evd"
	"godat/mem"
)

// OwnSend stands for the remote memory of a connection's own sends and receives, which have none: by it
// the short way of a post tells them from the program's. OwnShot stands for the one-shot of those in a batch,
// which have none either. They alone may have cookies that Reserve keeps.
var (
	OwnSend mem.RemoteSegment
	OwnShot = new(evd.OneShot)
)

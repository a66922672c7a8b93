package line

import "godat/hw"

// Config says what a mailbox is made with. It does not change.
type Config struct {
	Source any   // what the events of its posts are about
	Owner  Owner // what the mailbox belongs to
	Crew   *Crew
	Prompt bool // a receive is with the provider when its post returns; see awaitHanded

	// The most posts outstanding, and their segments, which Change makes more of.
	RequestDepth, RequestIOV int
	RecvDepth, RecvIOV       int
}

// Init makes a mailbox in phase Waiting, which has no queue pair. cold is the part of it that its owner
// keeps elsewhere.
func (b *Mailbox) Init(cold *Cold, cfg Config) {
	b.source, b.cold = cfg.Source, cold
	cold.owner, cold.crew = cfg.Owner, cfg.Crew
	b.Requests.init(b, cfg.RequestDepth, cfg.RequestIOV)
	b.Requests.plain = hw.OpSend
	b.Requests.tailShift, b.Requests.endInput = requestShift, tellRequestEnd
	b.Recvs.init(b, cfg.RecvDepth, cfg.RecvIOV)
	b.Recvs.plain = hw.OpRecv
	b.Recvs.tailShift, b.Recvs.endInput = recvShift, tellRecvEnd
	b.Recvs.prompt = cfg.Prompt
}

// IDs are the ids of the mailbox's work requests, which its owner makes unlike all others of the device.
type IDs struct {
	Request, Recv       uint64 // of slot 0
	RequestEnd, RecvEnd uint64
	Mark                uint64
}

// SetIDs sets the ids, before there is a queue pair.
func (b *Mailbox) SetIDs(ids IDs) {
	b.Requests.id, b.Requests.endID = ids.Request, ids.RequestEnd
	b.Recvs.id, b.Recvs.endID = ids.Recv, ids.RecvEnd
	b.unreported.id = ids.Mark
}

// Start lets mailboxes be made.
func (c *Crew) Start() {
	c.handings.more.L = &c.handings.mu
	c.workers.Start(serveLeft, func(b *Mailbox) **Mailbox { return &b.nextInList })
}

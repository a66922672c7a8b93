package rpc

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"godat/hw"
	"godat/mem"
	dat "godat/runtime"
)

// Config has the settings of a client or a server. The zero value is good for 16 calls at a time,
// with messages of up to 4 KiB.
type Config struct {
	// Calls is the most calls of a connection that are under way at a time; 0 means 16. A
	// client has as many as it and the server allow. There may be 16 384, or a quarter of the requests
	// that the device has outstanding, less one: 4095 over iwarp.
	Calls int
	// Message is the most bytes of a payload inside a message, of requests that the server
	// takes and of answers that the client takes; 0 means 4096.
	Message int
	// Metadata is the most bytes of a call's metadata, of which the client sends and the server takes the
	// smaller: of each key and its value, and three more for each; 0 means 256. See [WithMetadata].
	Metadata int
	// Answer is the most bytes of an answer of [Client.CallJSON] that the client fetches; 0 means 64 MiB,
	// which is the most. As long as a fetch lasts, a verbs device pins that much on the server's word; over
	// other providers the memory is taken as the bytes come. A longer answer is an [Error] with CodeTooLong,
	// and the call has run.
	Answer int
	// Conns is the most connections of a server at a time; 0 means 128, or as many as there may be
	// if that is less: their messages share 2^20 places for events, of which a connection needs up to
	// 6*Calls + 23. Dial of a further client fails with an [Error] that has CodeFull. Each end of a connection has memory for
	// 8*Calls + 8 messages of Message and Metadata bytes: 585 KiB with the defaults, and 64 GiB at the most.
	Conns int
	// PZ is the zone of the connections' memory; nil makes one for all connections of the
	// server or client, which Serve, Shutdown and Close refuse to close while memory of the program's is in
	// it. So a program that frees its memory behind them, as a store of objects does, names a zone of its
	// own, and closes that last. No peer reaches memory in it but what is registered for that.
	PZ *mem.PZ
	// Patience is how long [Client.Call] still waits when its context has ended and the server may
	// be moving memory of the call's. Then the client breaks the connection, so that the memory is the
	// caller's again. A server gives a [Request.Read] or Write as much time after the call's end.
	// While octets of the connection move, both wait as long again, up to Stall in all: see
	// [godat/ep.Endpoint.Flow]. 0 means a second. On a link that loses some of a hundred packets
	// TCP may pause for longer than that before it sends again: let Patience be five seconds there.
	Patience time.Duration
	// Stall is how long a server waits for a client that does nothing, before it breaks that
	// connection: for the next piece of all that it reads and writes, 256 KiB at most, and for the client to
	// take the next one of the answers that wait. It bounds how long Patience may last on a slow link, of both
	// ends. 0 means 30 seconds.
	Stall time.Duration
	// Grace is how long [Server.Serve] waits for requests under way when its context has ended; 0
	// means 10 seconds.
	Grace time.Duration
	// Redial makes a client connect anew when its connection has ended, with pauses that grow
	// up to Redial, each longer or shorter by up to a half, until a connection has lived as long; 0
	// means that it does not. See [Client.Call] for what that does to calls.
	Redial time.Duration
	// Await makes Dial try again, with pauses as those of Redial or up to a second, until the
	// server takes the connection or Dial's context ends: for a client that starts before its
	// server or the server's name, or while the server is started anew. It makes Listen try
	// again, with pauses of up to 50 ms, while the address is in use: for a server that starts before
	// the one that it follows is shut down. Any other error of Listen, and an address of Dial's that is
	// malformed, is returned at once.
	Await bool
	// AroundCall, of a client, runs around each call, in the goroutine of its caller: it may look at the
	// call, change it and its context, and look at the outcome. next makes the call, and appends the
	// answer to the caller's memory; AroundCall calls it once, or again to make the call again, or not. It
	// leaves SinkBytes and Written of a call of [Client.CallJSON] as they are: the answer may be there.
	// nil is next alone. A trace id goes with all calls so: see the example Metadata.
	AroundCall func(ctx context.Context, call Call, next CallFunc) ([]byte, error)
	// AroundHandler, of a server, runs around the handler of [Server.Serve] for each request, in the
	// handler's goroutine; next is that handler. What AroundHandler returns is the answer. nil is next
	// alone. Requests that the program takes from [Server.Requests] have no handler.
	AroundHandler func(r *Request, next Handler) ([]byte, error)
	// Methods names methods, for the counts by method (see [MethodSnapshot]) and what is made of them; those
	// that it does not name count as "others". nil: each method counts by its number, up to 64 of them. No name
	// is "" or "others", and no two methods have the same. Names
	// stay as they are while the client or server lives, and are the same for all of an address.
	Methods map[uint16]string
	// Log takes what no caller is told: from a server, that it waits for its address, connections for which
	// it lacks memory or the like, connections that it broke, with the reason, which their clients do not
	// learn, handlers that panic, and answers of [Server.Serve] that could not be sent; from a client,
	// connections that end, the first attempt
	// that fails, and the one that succeeds. Lines of connections are written in a goroutine of their own, in order, and
	// nothing waits for them but Close, 5 s at most; lines beyond 64 that wait are dropped, and the next one says how many.
	// nil logs nothing.
	Log *slog.Logger
}

const (
	defaultCalls    = 16
	mostCalls       = 1 << 14
	defaultMessage  = 4096
	defaultMetadata = 256
	mostMetadata    = 1 << 14
	defaultConns    = 128
	defaultPatience = time.Second
	defaultStall    = 30 * time.Second
	defaultGrace    = 10 * time.Second

	// mostPlaces is how many events of a server's connections may wait, as dat.ConnConfig.Conns says.
	mostPlaces = 1 << 20

	// mostMemory is how many bytes a connection may have for messages.
	mostMemory = 64 << 30

	// mostReceives bounds what a hello may promise.
	mostReceives = 1 << 20
)

// receives is how many messages may be on their way to an end: a call or its answer, and a
// cancel, for each call, and a CREDIT.
func (cfg *Config) receives() int { return 2*cfg.Calls + 2 }

// mostCallsOf is how many calls a device has room for: for each a request and its answer, and as many
// RDMA operations.
func mostCallsOf(device hw.Attr) int { return min(mostCalls, device.MaxDepth/4-1) }

// mostConns is how many connections have room for their events.
func (cfg *Config) mostConns() int { return mostPlaces / (3*cfg.receives() + 17) }

// complete fills in the defaults and checks the rest, for a device.
func (cfg *Config) complete(op string, device hw.Attr) error {
	calls := mostCallsOf(device)
	cfg.Calls, cfg.Message = cmp.Or(cfg.Calls, defaultCalls), cmp.Or(cfg.Message, defaultMessage)
	cfg.Metadata, cfg.Patience = cmp.Or(cfg.Metadata, defaultMetadata), cmp.Or(cfg.Patience, defaultPatience)
	cfg.Stall, cfg.Grace = cmp.Or(cfg.Stall, defaultStall), cmp.Or(cfg.Grace, defaultGrace)
	cfg.Answer = cmp.Or(cfg.Answer, mostLater)
	switch {
	case cfg.Calls < 1 || cfg.Calls > calls:
		return hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "Config.Calls is %d; on this device it may be 1 to %d", cfg.Calls, calls)
	case cfg.Conns < 0 || cfg.Conns > cfg.mostConns():
		return hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "Config.Conns is %d; with Calls %d it may be 1 to %d", cfg.Conns, cfg.Calls, cfg.mostConns())
	case cfg.Patience < 0 || cfg.Stall < 0 || cfg.Grace < 0 || cfg.Redial < 0:
		return hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "Config.Patience is %v, Stall %v, Grace %v and Redial %v; none may be negative",
			cfg.Patience, cfg.Stall, cfg.Grace, cfg.Redial)
	case cfg.Answer < 1 || cfg.Answer > mostLater:
		return hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "Config.Answer is %d; it may be 1 to %d", cfg.Answer, mostLater)
	case cfg.Metadata < 0 || cfg.Metadata > mostMetadata:
		return hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "Config.Metadata is %d; it may be 1 to %d", cfg.Metadata, mostMetadata)
	}
	if wrong := wrongNames(cfg.Methods); wrong != "" {
		return hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "Config.Methods names %s", wrong)
	}
	if most := min(1<<30, device.MaxMessage-overhead-uint64(cfg.Metadata)); cfg.Message < 1 || uint64(cfg.Message) > most {
		return hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "Config.Message is %d; on this device it may be 1 to %d", cfg.Message, most)
	}
	messages := 4 * int64(cfg.receives())
	if most := mostMemory/messages - int64(cfg.Metadata) - overhead; int64(cfg.Message) > most {
		return hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "Config.Message is %d; with Calls %d it may be 1 to %d: each end of a connection has for messages %d times as much, which may be 64 GiB",
			cfg.Message, cfg.Calls, most, messages)
	}
	cfg.Conns = cmp.Or(cfg.Conns, min(defaultConns, cfg.mostConns()))
	return nil
}

// makePZ makes the zone unless the program gave one. closePZ closes the one that it made.
func (cfg *Config) makePZ(op string, ia *dat.IA) (closePZ func() error, err error) {
	if cfg.PZ != nil {
		switch of, err := dat.IAOf(cfg.PZ); {
		case err != nil:
			return nil, hw.Errorf(op, hw.InvalidHandle, hw.HandlePZ, "Config.PZ is closed; NewPZ makes another")
		case of != ia:
			return nil, hw.Errorf(op, hw.InvalidHandle, hw.HandlePZ, "Config.PZ is another adapter's: NewPZ of this one makes zones for it")
		}
		return func() error { return nil }, nil
	}
	cfg.PZ, err = ia.NewPZ()
	return cfg.PZ.Close, err
}

func (cfg *Config) hello() []byte {
	return hello{calls: uint16(cfg.Calls), receives: uint32(cfg.receives()), message: uint32(cfg.Message), metadata: uint32(cfg.Metadata)}.encode()
}

func (cfg *Config) conn() dat.ConnConfig {
	return dat.ConnConfig{
		Depth: cfg.receives(), Message: cfg.Message + cfg.Metadata + overhead, Conns: cfg.Conns, PZ: cfg.PZ,
		Private: cfg.hello(), Refusal: refusal(CodeFull), Batches: true,
	}
}

package calls

import "context"

// Row is one way to make calls.
type Row struct {
	Name    string
	Options string // what is set, and what is not, for people who want to repeat it
	// Deadline says whether the server knows the deadline of a call.
	Deadline bool
	// NoLimit says that a call has no deadline at its client either.
	NoLimit bool
	// OneProcess says that both ends are in one process.
	OneProcess bool
	serve      func(w *work) (server, error)
	dial       func(addr string, callers int) (client, error)
}

// server answers calls, as its work says.
type server interface {
	addr() string
	close() error
}

// client makes calls of callers, which have one goroutine each.
type client interface {
	// memory is the caller's: for requests of puts, and for answers of gets.
	memory(caller, size int) ([]byte, error)
	put(ctx context.Context, caller int, body []byte) (answer uint64, err error)
	get(ctx context.Context, caller int, request, room []byte) (got view, err error)
	close() error
}

// heap is memory as make has it.
type heap struct{}

func (heap) memory(_, size int) ([]byte, error) { return make([]byte, size), nil }

// workers is how many requests a server handles at a time, where its library asks.
const workers = 16

// The names of rows that are compared.
const (
	overIWARP = "rpc over iwarp, registered"
	tunedGRPC = "gRPC, tuned"
	plainHTTP = "net/http"
	onNet     = "a plain server on net"
)

const (
	loop     = "loop"
	loopback = "iwarp:127.0.0.1"
)

// rows are all rows, those that are tuned first.
func rows() []Row {
	return []Row{
		{
			Name: overIWARP, Deadline: true,
			Options: "rpc.Config{} and 16 workers. Memory of both ends is registered once: Call.Source and Sink, Request.Read and Write. Payloads of up to 4 KiB are inside messages",
			serve:   func(w *work) (server, error) { return serveRPC(loopback, w, true) },
			dial:    func(addr string, callers int) (client, error) { return dialRPC(loopback, addr, callers, true) },
		},
		{
			Name: tunedGRPC, Deadline: true, Options: tunedOptions,
			serve: serveTunedGRPC, dial: dialTunedGRPC,
		},
		{
			Name: onNet, Deadline: true, Options: plainOptions,
			serve: servePlain, dial: dialPlain,
		},
		{
			Name: plainHTTP, Options: "HTTP/1.1, as it comes, with an idle connection kept for each caller. Deadlines are the client's alone: HTTP does not tell them. The server reads into memory that it keeps",
			serve: serveHTTP, dial: dialHTTP,
		},
		{
			Name: "rpc over iwarp, as it comes", Deadline: true,
			Options: "rpc.Config{} and 16 workers, Call.SourceBytes and SinkBytes, Request.ReadAll and WriteBytes: memory is registered for each call. Payloads of up to 4 KiB are inside messages",
			serve:   func(w *work) (server, error) { return serveRPC(loopback, w, false) },
			dial:    func(addr string, callers int) (client, error) { return dialRPC(loopback, addr, callers, false) },
		},
		{
			Name: "gRPC, as it comes", Deadline: true,
			Options: "unary calls of a protobuf BytesValue, no option but MaxRecvMsgSize and insecure credentials",
			serve:   serveGRPC, dial: dialGRPC,
		},
		{
			Name: "net/rpc", NoLimit: true, Options: "gob, as it comes, one connection. It has no deadlines",
			serve: serveNetRPC, dial: dialNetRPC,
		},
		{
			Name: "rpc over loop, registered", Deadline: true, OneProcess: true,
			Options: "as over iwarp. loop is inside one process, so both ends are in one: the row is no transport beside the others, but what the calls themselves cost",
			serve:   func(w *work) (server, error) { return serveRPC(loop, w, true) },
			dial:    func(addr string, callers int) (client, error) { return dialRPC(loop, addr, callers, true) },
		},
	}
}

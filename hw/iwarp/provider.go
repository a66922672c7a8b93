package iwarp

import (
	"context"
	"io"
	"net"

	"godat/hw"
)

// Name is the provider's name, and that of its default device.
const Name = "iwarp"

func init() { hw.MustRegister(New(Config{})) }

// Config says how a provider reaches its peers. The zero value speaks TCP.
type Config struct {
	// Name is the provider's name; empty means [Name].
	Name string

	// Dial makes a connection to addr, which is host:port as net.JoinHostPort makes
	// it, or gives up when ctx ends. It has a goroutine of its own, and if it panics, ends that goroutine or does not
	// return, only the attempt fails. Nobody waits for it longer than for the parameter linger after ctx has ended: a
	// connection that it makes later is closed. The adapter's close ends ctx; if Dial has not returned 5 s later, nor has
	// Trace, the close's error says so, and the next close waits once more. Connections of Dial, and those of Listen, must
	// support deadlines. A nil Dial dials TCP.
	//
	// A listener that takes an attempt's connection and hangs up says no reason. One of this package does so when it
	// closes, when its process has no descriptor left (ulimit -n), when more connections without a request are there than
	// halfopen or halfopenip allows, and when the first octets are of another protocol, such as TLS to a listener without
	// it; its page tells which. Others are servers of other protocols, as of TLS where Dial makes none.
	Dial func(ctx context.Context, addr string) (net.Conn, error)

	// Listen listens at addr, which is host:port; an empty host means all addresses and
	// port 0 any free port. The qualifier is the port of the listener's Addr, or the
	// qualifier asked for if that has no port. A nil Listen listens to TCP. The provider calls Listen in a
	// goroutine of its own as Dial, and waits for it for five seconds; a listener that comes later is closed.
	Listen func(addr string) (net.Listener, error)

	// Address is the address that devices report as their own; empty means that of the
	// device, or of an interface.
	Address string

	// Params are the settings of devices that do not set them themselves.
	// Booleans are as for strconv.ParseBool, times as for time.ParseDuration, and longer than 0 where
	// nothing else is said:
	//
	//	crc         both ends compute CRCs; if false, the peer decides (true)
	//	markers     ask the peer for markers (false)
	//	fpdu        longest FPDU sent, 136 to 64776 bytes; 0 means one TCP segment, or 64 KiB to a
	//	            peer that says it takes those (0)
	//	big         tell the peer that this end takes FPDUs longer than a segment (true)
	//	extensions  offer RFC 7306 to a peer of this package (true)
	//	revision    the revision of MPA to begin with: 2 or 1 (2)
	//	fallback    ask again with revision 1 when the peer hangs up (true)
	//	peer2peer   promise other implementations a ready-to-receive (RFC 6581), as
	//	            Intel's adapters want; Linux's siw stops its kernel when a
	//	            connection with that promise closes too early (false)
	//	private     most private data, 0 to 508 bytes; siw loses what exceeds 248 (248)
	//	mpa         how long a peer may take for its side of the start-up (5s)
	//	reply       how long an attempt to connect may take that has no time-out of its
	//	            own, the time for the peer's program to answer included; 0 means
	//	            without a limit (1m)
	//	grace       how long the accepting end waits for the first FPDU of a peer that
	//	            has promised none, before it reports the connection (50ms)
	//	nudge       how long the initiator waits for the first octets of a peer of
	//	            another implementation before it sends a write of no octets, which
	//	            Linux's siw may need; twice as long before each further one, 0 means
	//	            never (50ms)
	//	keepalive   how long a peer's host may be gone, a peer of this package stuck, or
	//	            a read without an answer, before this end notices. On Linux and macOS
	//	            the time of an answer does not run while the peer's system goes on to
	//	            acknowledge what was sent before the read, as over a slow link. It is 1ms or more;
	//	            but the host of a peer of another implementation, which owes nothing, may be gone for
	//	            five seconds or more, since TCP alone notices that and counts in seconds. 0 means
	//	            without a limit of this package's: TCP's
	//	            keep-alive stays as the dialer or the listener has set it, and with
	//	            Go's defaults it notices a host that is gone after two and a half
	//	            minutes (30s)
	//	stall       how long a peer may take no octets while this end sends, or leave
	//	            an FPDU incomplete; a pause of this process does not count, nor for
	//	            keepalive and mpa; over TCP on Linux and macOS a peer that takes none has
	//	            no longer than keepalive (30s)
	//	linger      how long each of the two stages of a connection's end may take (1s)
	//	halfopen    most connections per listener whose request has not come; the
	//	            oldest gives way to a new one, when it has had 100ms (four times
	//	            the listener's backlog, 1024 or more). The backlog of the runtime's
	//	            IA.Listen is ConnConfig.Conns, 128 or more
	//	halfopenip  the same per peer address, or per IPv6 network of 64 bits (the
	//	            listener's backlog, 256 or more)
	//	buffer      socket buffers in bytes, up to 1 GiB; 0 leaves them to the system (0)
	//	congestion  the TCP congestion control, of those that the system allows. Without
	//	            it, a connection has the system's, unless that paces what it sends (bbr)
	//	            and the peer is on the same host: there pacing only costs, and the
	//	            device takes reno, where nobody else has made the connection. On
	//	            systems other than Linux there is no such parameter
	//	trace       a directory for a file of each connection's packets, payloads
	//	            included, as Trace makes it; empty for that of the environment variable
	//	            GODATTRACE, and without either there are no files. The device makes the
	//	            directory, and a connection whose file can't be made has none ("")
	Params map[string]string

	// Trace makes the file for a connection's packets, in the pcapng format that
	// Wireshark reads; with a nil Trace, or a nil file, none is written. A traced
	// connection is slow. The provider calls Trace once per connection, in a goroutine of its
	// own as Dial, and closes the file with the connection. The connection waits for Trace and for the file's Write
	// and Close. The parameter trace does the same with files of a directory, where Trace is nil.
	Trace func(local, remote net.Addr) io.WriteCloser
}

// provider opens iWARP devices.
type provider struct {
	cfg    Config
	system bool // the provider listens at the system's addresses
	owns   bool // nobody else has the connections
}

// New makes a provider. It does not register it: a caller that wants the provider to be
// found by name calls hw.Register.
func New(cfg Config) hw.Provider {
	p := &provider{system: cfg.Listen == nil, owns: cfg.Listen == nil && cfg.Dial == nil}
	if cfg.Name == "" {
		cfg.Name = Name
	}
	p.cfg = cfg
	return p
}

// Name is the provider's name.
func (p *provider) Name() string { return p.cfg.Name }

// Open opens the device with the local address cfg.Device, or, if that is empty, the
// device with all local addresses. The name of a network interface stands for its first
// address. Open fails with INVALID_ADDRESS if the name is no address, interface or host,
// unless Config.Listen is set, and with INVALID_PARAMETER on an unknown or wrong
// parameter.
func (p *provider) Open(cfg hw.OpenConfig) (hw.Device, error) {
	set := defaultSettings()
	for _, params := range []map[string]string{p.cfg.Params, cfg.Params} {
		for key, value := range params {
			if err := set.apply(key, value); err != nil {
				return nil, err
			}
		}
	}
	var err error
	if set.trace, err = set.traceDir(); err != nil {
		return nil, err
	}
	host := cfg.Device
	if p.system {
		if host, err = localHost(host); err != nil {
			return nil, err
		}
	}
	return newDevice(p, host, set, cfg.Async), nil
}

func dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", addr)
}

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

	// Dial makes a connection to addr, host:port as net.JoinHostPort makes it,
	// or gives up when ctx ends. Connections must support deadlines, and so must
	// Listen's. nil dials TCP.
	Dial func(ctx context.Context, addr string) (net.Conn, error)

	// Listen listens at addr, which is host:port; an empty host means all
	// addresses and port 0 any free port. The port of what the listener's Addr
	// says is the qualifier, or that asked for if it says none. nil listens to TCP.
	Listen func(addr string) (net.Listener, error)

	// Address is what devices report as their own address; empty means that of
	// the device, or of an interface.
	Address string

	// Params are the settings of devices that do not set them themselves.
	// Booleans are as for strconv.ParseBool, times as for time.ParseDuration:
	//
	//	crc         both ends compute CRCs, which else the peer decides (true)
	//	markers     ask the peer for markers (false)
	//	fpdu        longest FPDU sent; 0 is one TCP segment, or 64 KiB to a peer
	//	            that says it takes those (0)
	//	big         say that FPDUs longer than a segment are welcome (true)
	//	extensions  offer RFC 7306 to a peer of our own kind (true)
	//	revision    of MPA, to begin with: 2 or 1 (2)
	//	fallback    ask again with revision 1 when the peer hangs up (true)
	//	peer2peer   promise peers of other kinds a ready-to-receive (RFC 6581), as
	//	            Intel's adapters want; Linux's siw stops its kernel when a
	//	            connection with that promise closes too early (false)
	//	private     most private data, 0 to 508; siw loses what exceeds 248 (248)
	//	mpa         how long a peer may take for its side of the start-up (5s)
	//	grace       how long a peer that asked for nothing may send first (50ms)
	//	nudge       how long a peer of another kind that we have connected to may say
	//	            nothing before it gets a write of no octets, as Linux's siw may
	//	            need to look; longer for each that follows, 0 is for ever (50ms)
	//	keepalive   how long a peer goes unnoticed at most that is dead, or, if it has
	//	            agreed to a read, stuck; 0 is for ever (30s)
	//	stall       how long a peer may take nothing while we send (30s)
	//	linger      how long the end of a connection may take, twice (1s)
	//	halfopen    most connections per listener whose request has not come; the
	//	            oldest gives way to a new one, when it has had 20ms (1024)
	//	halfopenip  the same per peer address, or network of 64 bits of IPv6 (256)
	//	spin        how long to look again and again for what comes, before
	//	            waiting for it: shorter round trips for a processor (0)
	//	buffer      socket buffers in bytes; 0 leaves them to the system (0)
	Params map[string]string

	// Trace makes the file for a connection's packets, in pcapng's format as
	// Wireshark reads it; nil, or a nil file, writes none. A traced connection is
	// slow. It is called once per connection, from any goroutine; the file is
	// closed with the connection.
	Trace func(local, remote net.Addr) io.WriteCloser
}

// Provider opens iWARP devices.
type Provider struct {
	cfg    Config
	system bool // it listens at the system's addresses
}

// New makes a provider. Registering it is the caller's business, and needed only
// where it is to be found by name.
func New(cfg Config) *Provider {
	system := cfg.Listen == nil
	if cfg.Name == "" {
		cfg.Name = Name
	}
	if cfg.Dial == nil {
		cfg.Dial = dialTCP
	}
	if cfg.Listen == nil {
		cfg.Listen = listenTCP
	}
	return &Provider{cfg: cfg, system: system}
}

// Name is the provider's name.
func (p *Provider) Name() string { return p.cfg.Name }

// Open opens the device with the local address cfg.Device, or, if that is empty,
// the one that has all of them. The name of a network interface stands for its first
// address. A name that is neither an address, an interface nor a host is an
// INVALID_ADDRESS, unless Config.Listen makes the addresses; an unknown or wrong
// parameter is an INVALID_PARAMETER.
func (p *Provider) Open(cfg hw.OpenConfig) (hw.Device, error) {
	set := defaultSettings()
	for _, params := range []map[string]string{p.cfg.Params, cfg.Params} {
		for key, value := range params {
			if err := set.apply(key, value); err != nil {
				return nil, err
			}
		}
	}
	host := cfg.Device
	if p.system {
		var err error
		if host, err = localHost(host); err != nil {
			return nil, err
		}
	}
	return newDevice(p, host, set), nil
}

func dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr)
}

func listenTCP(addr string) (net.Listener, error) { return net.Listen("tcp", addr) }

package rpc

import "log/slog"

// String names the client by the server's address. It may be called at any time, like the
// String of every handle.
func (c *Client) String() string {
	if c == nil {
		return "Client(nil)"
	}
	return "Client(" + c.address + ")"
}

// LogValue names the server's address, for log/slog.
func (c *Client) LogValue() slog.Value {
	if c == nil {
		return slog.StringValue(c.String())
	}
	return slog.GroupValue(slog.String("server", c.address))
}

// String names the server by its address. It may be called at any time, like the String of
// every handle.
func (s *Server) String() string {
	if s == nil {
		return "Server(nil)"
	}
	return "Server(" + s.Addr() + ")"
}

// LogValue names the server's address, for log/slog.
func (s *Server) LogValue() slog.Value {
	if s == nil {
		return slog.StringValue(s.String())
	}
	return slog.GroupValue(slog.String("address", s.Addr()))
}

// LogValue is String, for log/slog.
func (r *Request) LogValue() slog.Value { return slog.StringValue(r.String()) }

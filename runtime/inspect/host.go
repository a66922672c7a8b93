package inspect

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
)

// AllowHosts lets visitors reach the page by further names: "ops.example", behind a proxy for instance. A
// name that a visitor's browser asks for may be one of another site, which has given it this host's
// address, and whose script would then read the page. So a page that is asked on a loopback address takes
// addresses, localhost and these names alone, and a POST takes them, and the host's name, anywhere.
// AllowHosts is called before the first request, and returns h.
func (h *Handler) AllowHosts(names ...string) *Handler {
	if !h.isMade() {
		return h
	}
	for _, name := range names {
		h.hosts = append(h.hosts, strings.ToLower(name))
	}
	return h
}

// refusal is why a request is not for this page, as its Host and Origin say; "" if it may be.
func (h *Handler) refusal(r *http.Request) string {
	if origin := r.Header.Get("Origin"); origin != "" && !sameHost(origin, r.Host) && !unnamed(r) {
		return "another site's page asks for this one: " + cut(origin)
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return ""
	}
	at, err := netip.ParseAddrPort(local.String())
	if err != nil { // a socket of another family, which no browser reaches
		return ""
	}
	loopback := at.Addr().Unmap().IsLoopback()
	if !loopback && r.Method != http.MethodPost || h.knows(r.Host, loopback) {
		return ""
	}
	return fmt.Sprintf("the page is not at the name %s: another site may have given it this host's address. Ask for http://%s, or have the program allow the name (inspect.Handler.AllowHosts)", cut(r.Host), at)
}

// knows reports whether a request's Host is an address, or a name of the page's.
func (h *Handler) knows(host string, loopback bool) bool {
	name := strings.ToLower(strings.Trim(hostOf(host), "[]"))
	if _, err := netip.ParseAddr(name); err == nil || name == "localhost" || slices.Contains(h.hosts, name) {
		return true
	}
	own, err := os.Hostname()
	return !loopback && err == nil && name == strings.ToLower(own)
}

// unnamed reports whether a request is of this page although its Origin is "null": a browser names no origin
// in a POST of a page that sends no referrer, as this one, and says by Sec-Fetch-Site, which no script sets, that it
// is the same.
func unnamed(r *http.Request) bool {
	return r.Header.Get("Origin") == "null" && r.Header.Get("Sec-Fetch-Site") == "same-origin"
}

// sameHost reports whether an Origin is of a host and port.
func sameHost(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}

// cut is a text of a visitor's, for a sentence.
func cut(text string) string { return fmt.Sprintf("%q", text[:min(len(text), 100)]) }

// onLoopback is an address to serve at, which is of loopback if it says no host.
func onLoopback(address string) string {
	if host, port, err := net.SplitHostPort(address); err == nil && host == "" {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return address
}

// Package wire is the iWARP codec: the bytes of MPA (RFC 5044, RFC 6581), DDP
// (RFC 5041) and RDMAP (RFC 5040, RFC 7306), appended and parsed. It does no I/O and
// keeps no state: its caller checks sequence numbers and memory, and negotiates.
//
// # What encloses what
//
//	TCP stream ── MPA Request or Reply (MPARequest, MPAReply), once per direction
//	           └─ FPDU ─┬─ ULPDU_Length, 2 octets
//	                    ├─ ULPDU ─┬─ Header: DDP and RDMAP control, 14 or 18 octets
//	                    │         └─ payload, ReadRequest, AtomicRequest, AtomicResponse,
//	                    │            Terminate, or immediate data
//	                    └─ pad and CRC (AppendTrailer, ParseTrailer)
//
// An FPDU may have markers in it; see AppendMarkedFPDU and ParseMarkedFPDU.
//
// # Conventions
//
// Append functions append to dst and return it, as append does. Parse functions
// read from the start of b, report how many octets they used, and return
// [ErrIncomplete], which is not the peer's fault, when b ends early. Every other
// error is an [*Error] (errors.As finds it) that says which Terminate the cause
// calls for. The errors are variables, so nothing on a data path allocates, neither
// success nor failure. Slices in parsed values alias b. The codec sends reserved bits
// as zero and ignores them in what it parses.
//
// The package imports the standard library and nothing else. Its functions may
// be called from any goroutine; a value belongs to one at a time.
package wire

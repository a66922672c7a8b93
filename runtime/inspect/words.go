package inspect

import "strings"

// objects say what the objects of reports are, where a line about one begins.
var objects = map[string]string{
	"rpc clients":     "rpc client to",
	"rpc servers":     "rpc server on",
	"rpc connections": "rpc connection from",
	"rpc refusals":    "rpc dials to",
}

// rankOf is the rank of what the rows of a kind say, where it is not 0: calls are what a user feels.
var rankOf = map[string]int{"rpc clients": felt, "rpc servers": felt, "rpc refusals": felt}

// headOf is what a line about a row begins with: "disk b" of the row b of "disks".
func headOf(kind, name string) string {
	of := objects[kind]
	if of == "" {
		of = strings.TrimSuffix(kind, "s")
	}
	if name == kind || strings.HasPrefix(name, of) {
		return name
	}
	return of + " " + name
}

// many says how many there are of something.
func many[N int | uint64](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return number(n) + " " + one + "s"
}

// with is many with a verb, of one and of more.
func with[N int | uint64](n N, one, does, do string) string {
	if n == 1 {
		do = does
	}
	return many(n, one) + " " + do
}

func wait[N int | uint64](n N, one string) string { return with(n, one, "waits", "wait") }
func are[N int | uint64](n N, one string) string  { return with(n, one, "is", "are") }
func were[N int | uint64](n N, one string) string { return with(n, one, "was", "were") }

// all is for all that there are of something.
func all(n int, one string) string {
	if n == 1 {
		return "the only " + one
	}
	return "all " + many(n, one)
}

// allOr says of how many a reason is.
func allOr(all bool) string {
	if all {
		return "each"
	}
	return "the last"
}

// lastFrom names who was the last.
func lastFrom(address string) string {
	if address == "" {
		return ""
	}
	return "; the last came from " + address
}

// wasOrWere is the verb of so many.
func wasOrWere(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// isOrAre is the verb of so many.
func isOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// kept says what a program does with the buffers of a connection of which none is posted, the oldest for a while.
func kept(n int, held string) string {
	switch n {
	case 0:
		return "take the messages that have come, and give their buffers back"
	case 1:
		return "this program keeps 1 buffer" + held + ", and does not give it back (Conn.Release)"
	}
	return "this program keeps " + number(n) + " buffers" + held + ", and gives none back (Conn.Release)"
}

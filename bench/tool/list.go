package tool

import "strconv"

// All returns the tools: those of round trips first.
func All() []*Tool {
	return []*Tool{
		ucx("tag_lat", "tcp"), ucx("tag_lat", "sm"), pingpong("tcp", "msg"), pingpong("shm", "rdm"),
		qperf("tcp_lat"), perftest("ib_send_lat"), ucx("tag_bw", "tcp"), ucx("tag_bw", "sm"), qperf("tcp_bw"),
		perftest("ib_write_bw"), dapltest(),
	}
}

// What several tools have in common.
const (
	oneThread  = "one thread for each of two processes, without locks. "
	overTCP    = "Loopback TCP: system calls, and copies into and out of the kernel. "
	overShared = "Shared memory between the processes, polled: copies, no kernel. "
	half       = "It prints half a round trip; the figures are twice that. "
	byDevice   = "A verbs device, which moves the bytes; both ends poll; two processes. No check but the device's. "
)

// args are the arguments of a command line: texts and numbers.
func args(list ...any) (words []string) {
	for _, x := range list {
		switch x := x.(type) {
		case int:
			words = append(words, strconv.Itoa(x))
		case string:
			words = append(words, x)
		}
	}
	return words
}

const loopback = "127.0.0.1"

// ucx is a test of UCX's tagged messages.
func ucx(test, transport string) *Tool {
	latency := test == "tag_lat"
	does := "Tagged messages of UCX (receives match tags), polled: " + oneThread
	if transport == "tcp" {
		does += overTCP
	} else {
		does += overShared
	}
	if latency {
		does += half
	} else {
		does += "The sender's rate of sends that have completed. "
	}
	return &Tool{
		Name: "ucx_perftest " + test + " over " + transport, Binary: "ucx_perftest", Package: "ucx-utils", RoundTrip: latency, Does: does,
		env:    []string{"UCX_TLS=" + transport + ",self", "UCX_NET_DEVICES=lo"},
		server: func(t turn) []string { return args("-p", t.port) },
		client: func(t turn) []string {
			list := args(loopback, "-p", t.port, "-t", test, "-s", t.size, "-n", t.count, "-w", t.count/10, "-f")
			if !latency {
				list = append(list, args("-O", t.depth)...)
			}
			return list
		},
		read: readUCX(latency),
	}
}

// pingpong is libfabric's test over one of its providers.
func pingpong(provider, kind string) *Tool {
	does := "Messages of libfabric, polled: " + oneThread
	if provider == "tcp" {
		does += overTCP
	} else {
		does += overShared
	}
	flags := func(t turn) []string { return args("-p", provider, "-e", kind, "-I", t.count, "-S", t.size) }
	return &Tool{
		Name: "fi_pingpong over " + provider, Binary: "fi_pingpong", Package: "libfabric-bin", RoundTrip: true, Does: does + half,
		server: func(t turn) []string { return append(flags(t), args("-B", t.port)...) },
		client: func(t turn) []string { return append(flags(t), args("-P", t.port, loopback)...) },
		read:   readPingpong,
	}
}

// qperf is a test of blocking sockets.
func qperf(test string) *Tool {
	latency := test == "tcp_lat"
	does := "Blocking system calls on a TCP socket, which any threads may make. " + overTCP + "Its turns last whole seconds. "
	read := readQperf("bw", "bytes/sec", qperfMessages)
	if latency {
		does += half
		read = readQperf("latency", "ns", qperfTrips)
	} else {
		does += "A byte stream without messages: a write for each, and reads of what has come. "
	}
	return &Tool{
		Name: "qperf " + test, Binary: "qperf", Package: "qperf", RoundTrip: latency, Does: does, timed: true, stays: true,
		server: func(t turn) []string { return args("-lp", t.port) },
		client: func(t turn) []string {
			return args("-lp", t.port, "-t", t.seconds, "-m", t.size, "-uu", loopback, test)
		},
		read: read,
	}
}

// perftest is a program of perftest's.
func perftest(program string) *Tool {
	t := &Tool{
		Name: program, Binary: program, Package: "perftest", device: true,
		Does: byDevice + "RDMA writes, which the peer's program never sees; the writer's rate. ", read: readPerftestBandwidth,
	}
	flags := func(t turn) []string {
		return args("-d", t.device.name, "-x", t.device.gid, "-F", "-s", t.size, "-n", max(t.count, perftestFewest), "-p", t.port)
	}
	t.server = flags
	t.client = func(t turn) []string { return append(flags(t), t.device.addr) }
	if program == "ib_send_lat" {
		t.RoundTrip, t.Does, t.read = true, byDevice+"Sends and receives. "+half, readPerftestLatency
	}
	return t
}

// perftestFewest is the fewest messages that perftest takes besides its warm-up.
const perftestFewest = 500

// dapltest is a performance test of DAPL's: the library that godat's calls come from.
func dapltest() *Tool {
	return &Tool{
		Name: "dapltest -T P", Binary: "dapltest", Package: "dapl2-utils", device: true, registry: true, stays: true, ready: "Service Point Ready",
		Does:   byDevice + "RDMA writes through uDAPL, opened as not safe for threads; the writer's rate. ",
		server: func(t turn) []string { return args("-T", "S", "-D", t.device.name, "-n", t.port) },
		client: func(t turn) []string {
			return args("-T", "P", "-D", t.device.name, "-s", t.device.addr, "-n", t.port, "-m", "p", "-i", t.count, "-p", t.depth, "RW", t.size)
		},
		read: readDapltest,
	}
}

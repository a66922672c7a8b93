package conformance

var performanceCases = []Case{
	streamCase("PF-rw", "writes of two segments, waited for", stream{op: "RW 4096 2", count: 2048, pipeline: 1}),
	streamCase("PF-rr", "long reads, waited for", stream{op: "RR 32768", count: 4096, pipeline: 1}),
	streamCase("PF-rw4", "writes of four long segments, waited for", stream{op: "RW 32768 4", count: 4096, pipeline: 1}),
	streamCase("PF-bw", "sixteen long writes outstanding, waited for", stream{op: "RW 65536 2", count: 2048, pipeline: 16}),
	streamCase("PF-latb", "writes of four bytes, waited for", stream{op: "RW 4", count: 8192, pipeline: 1}),
	streamCase("PF-latp", "writes of four bytes, polled for", stream{op: "RW 4", count: 100000, pipeline: 1, poll: true}),
}

func streamCase(id, claim string, s stream) Case {
	return Case{ID: id, Claim: claim, run: func(r *rig) { r.stream(s) }}
}

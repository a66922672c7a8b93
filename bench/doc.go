// Command bench measures what the ways of delivery cost. It measures what a program
// would use instead in the same process and the same run.
//
//	go run ./bench delivery   how the ways of delivery compare, as a table
//	go run ./bench targets    the ratios that the project promises itself
//	go run ./bench iwarp      those of iWARP to plain TCP
//	go run ./bench idle       what idle connections between two processes cost
//
// Every figure is a median of ratios: contestants take turns in each repeat, and each
// contestant is compared with the anchor of the same repeat. A repeat whose anchor took
// over twice its best time is dropped, because something disturbed the machine.
// Absolute times say little about another machine.
//
// The same workloads are benchmarks for `go test -bench`, named so that
// `benchstat -col /mode` compares them.
package main

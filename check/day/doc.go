// Package day has the tests of a day in the life of a service: forty clients over slow and
// fast links that break and stand still, three servers that are started anew by turns and have
// more to do at times than they can, and handlers that end their goroutine, hang, or answer
// twice. Every call ends with its own answer or with a true reason, a call that has run has run
// once, and nothing is left.
//
//	go test ./check/day                                            a few seconds
//	go test ./check/day -timeout 2h -day.time 1h -day.seed 7       an hour
package day

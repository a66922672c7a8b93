// Package days has bad days of programs, and good ones. Each is staged in this process, with traffic over
// loop or iwarp. A visitor, who has nothing but the page of runtime/inspect as it is printed, looks at it
// every two seconds. Within a minute the first line says what hurts; it never says something that is not so,
// and not that all is well. On a good day it raises nothing.
//
//	go test -v ./check/days      with all first lines
//
// Somebody who knows neither the code nor the day judges best. What such a reader is given, pages of a program and of
// its peer, is written by
//
//	go test ./check/days -run '/a_pool_leaks' -pages DIR
package days

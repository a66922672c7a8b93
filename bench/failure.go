package main

// failure is the panic by which check and must end a measurement. The command line makes
// it the program's error.
type failure struct{ error }

// recovered sets err to the failure by which the caller's calls have ended.
func recovered(err *error) {
	switch why := recover().(type) {
	case nil:
	case failure:
		*err = why.error
	default:
		panic(why)
	}
}

// check ends the measurement on an error: a benchmark that half works measures nothing.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// must is check for a call with a value.
func must[T any](v T, err error) T {
	check(err)
	return v
}

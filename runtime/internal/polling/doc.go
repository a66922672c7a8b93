// Package polling empties the completion queues of a device that must be polled
// ([hw.Polled]), and hands the completions to the endpoints.
//
// An [Engine] lends completion queues to endpoints, each queue to one dispatcher. It
// empties them in one of two ways:
//
//	pinned   device ─Poll→ poller ─ring per queue→ deliverer per dispatcher ─Complete→ endpoints
//	driven   device ─Poll→ holder of the driver's token ─Complete→ endpoints
//
// In the first, which is for a program that names processors for it, a locked thread polls
// (poller.go) and a goroutine for each dispatcher delivers (deliverer.go). In the second, a
// back-stop goroutine polls (driver.go), unless consumers of the dispatchers do (consumed.go).
// In both, what polls sleeps unless the next completion is likely to come before a sleep
// pays (pace.go).
//
// The package knows the contract with devices and the dispatchers. Its user gives it
// the device, a [Completer], and a function that takes the device's errors.
package polling

// Package polling empties the completion queues of a device that must be polled
// ([hw.Polled]), and hands the completions to the endpoints.
//
// An [Engine] lends completion queues to endpoints, each queue to one dispatcher. It
// empties them in one of two ways:
//
//	pinned   device ─Poll→ poller ─ring per queue→ deliverer per dispatcher ─Complete→ endpoints
//	driven   device ─Poll→ holder of the driver's token ─Complete→ endpoints
//
// In the first, a locked thread polls (poller.go) and a goroutine for each dispatcher
// delivers (deliverer.go). In the second, the consumers of the dispatchers poll, and a
// back-stop goroutine polls when they don't (driver.go). Where the thread would have no
// processor of its own, the back-stop alone polls and delivers (config.go).
//
// The package knows the contract with devices and the dispatchers. Its user gives it
// the device, a [Completer], and a function that takes the device's errors.
package polling

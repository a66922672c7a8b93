package delivery

// PutAsync reports an asynchronous error. Any goroutine may call it; it does not
// block. On a closed dispatcher it does nothing.
func (d *Dispatcher) PutAsync(node *AsyncNode) {
	if d != nil {
		d.list(&d.async.errors, node)
	}
}

// PutRequest is PutAsync for a connection request, which the dispatcher remembers
// until ForgetRequest. The service point bounds how many of its requests wait,
// because any stranger can cause them. They take no place that an endpoint could
// reserve.
func (d *Dispatcher) PutRequest(node *AsyncNode) {
	d.async.remember(node)
	d.list(&d.async.requests, node)
}

// ForgetRequest removes a request that was answered. The request need not have been
// put.
func (d *Dispatcher) ForgetRequest(node *AsyncNode) { d.async.forget(node) }

// list lists an event, unless it is listed already, and delivers what it can.
func (d *Dispatcher) list(to *nodes, node *AsyncNode) {
	if d.main.closed() || !node.pending.CompareAndSwap(false, true) {
		return
	}
	d.async.push(to, node)
	d.main.takeListed()
}

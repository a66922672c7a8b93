package prometheus

import client "github.com/prometheus/client_golang/prometheus"

var described []*client.Desc

// describe makes a metric whose first label is the adapter.
func describe(name, help string, labels ...string) *client.Desc {
	return describeAll(name, help, append([]string{"adapter"}, labels...)...)
}

// describeAll makes a metric of the whole process.
func describeAll(name, help string, labels ...string) *client.Desc {
	d := client.NewDesc("godat_"+name, help, labels, nil)
	described = append(described, d)
	return d
}

var (
	buildInfo       = describeAll("build_info", "The program: 1.", "program", "module", "version", "commit", "godat", "goversion")
	startTime       = describeAll("process_start_time_seconds", "When the program began, in seconds since 1970.")
	descriptors     = describeAll("process_descriptors", "Open descriptors.")
	descriptorsMax  = describeAll("process_descriptors_max", "The limit on descriptors.")
	memory          = describeAll("process_memory_bytes", "Resident memory.")
	memoryMax       = describeAll("process_memory_max_bytes", "The least limit on memory of the control groups; Go's own is none, since the process may have more.")
	lockedMemoryMax = describeAll("process_locked_memory_max_bytes", "The limit on locked memory.")
	goroutines      = describeAll("process_goroutines", "Goroutines.")
	processors      = describeAll("process_gomaxprocs", "Processors that run Go code at a time.")

	up = describe("up", "Whether the adapter is open.")

	endpoints           = describe("endpoints", "Endpoints by state; the owner is a connection of the library, or the program.", "owner", "state")
	outstandingRequests = describe("requests_outstanding", "Requests that have not completed.")
	oldestRequest       = describe("oldest_request_age_seconds", "For how long the oldest request has been outstanding.")
	silentPeers         = describe("silent_peers", "Peers that do not answer the device.")
	unpostedReceives    = describe("receives_unposted", "Receives of connections that are not posted, because the program holds their buffers.")
	heldBuffers         = describe("buffers_held", "Buffers that the program has.")
	ownerMemory         = describe("owner_memory_bytes", "Memory of buffers and regions, by what has it: the page's list memory has the same.", "owner")
	ownerHeld           = describe("owner_buffers_held", "Buffers that the program has, by what they are of.", "owner")
	ownerHeldAge        = describe("owner_oldest_buffer_held_age_seconds", "For how long the program has had the oldest of these buffers.", "owner")
	operations          = describe("operations_total", "Operations that succeeded.", "queue", "operation")
	moved               = describe("moved_bytes_total", "Bytes that operations moved.", "queue", "operation")
	failed              = describe("operations_failed_total", "Operations that failed, without those that an end flushed.", "queue")
	requestTimes        = describe("request_duration_seconds", "How long requests took from the post to the completion, of those that were posted while requests were measured.")
	ends                = describe("connection_ends_total", "How connections, and attempts, ended.", "event", "layer", "code")

	dispatchers     = describe("dispatchers", "Event dispatchers.")
	fullDispatchers = describe("dispatchers_full", "Event dispatchers without a free place.")
	queuedEvents    = describe("events_queued", "Events that the program has not taken.")
	oldestEvent     = describe("oldest_event_age_seconds", "For how long the oldest event has waited for the program.")
	oldestCallback  = describe("oldest_callback_age_seconds", "For how long a callback of the program has run.")
	events          = describe("events_total", "Events that came.")
	lostEvents      = describe("events_lost_total", "Events that found no room.")
	refusedPosts    = describe("posts_refused_total", "Posts that found no room for their event.")

	polls         = describe("polls_total", "Polls of the device, by whether they found completions.", "result")
	consumerPolls = describe("consumer_polls_total", "Those polls that consumers made.")
	arms          = describe("poll_arms_total", "How often the device was asked for a wake-up.")
	waits         = describe("poll_waits_total", "Sleeps until the device has something.")
	wakes         = describe("poll_wakes_total", "Wake-ups of what delivers, or polls.")
	spun          = describe("poll_spin_seconds_total", "Time spent on polls that found nothing.")
	handBacks     = describe("poll_hand_backs_total", "How often consumers that had polled stopped.")

	takenPlaces  = describe("listener_connections", "Places for connections that are taken.", "listener")
	places       = describe("listener_connections_max", "Places for connections; 0 of a service point of the program's.", "listener")
	waitingPeers = describe("listener_peers_waiting", "Peers that wait for the program's answer.", "listener")
	answered     = describe("listener_requests_total", "Requests to connect that were accepted, were rejected, or found the backlog full.", "listener", "answer")
	halfOpen     = describe("listener_peers_half_open", "Peers that have sent no request.", "listener")
	dropped      = describe("listener_peers_dropped_total", "Peers that were dropped before their request came.", "listener", "reason")

	regions      = describe("memory_regions", "Registered regions.")
	registered   = describe("memory_registered_bytes", "Memory in registered regions.")
	mapped       = describe("memory_mapped_bytes", "Memory that is mapped for regions.")
	deviceErrors = describe("device_errors_total", "Asynchronous errors that the device reported.")

	callsUnderWay    = describe("rpc_client_calls", "Calls without an answer.", "server")
	messagesWaiting  = describe("rpc_client_messages_waiting", "Messages that wait for a receive of the server.", "server")
	clientsDown      = describe("rpc_clients_down", "Clients without a connection.", "server")
	oldestCall       = describe("rpc_oldest_call_age_seconds", "For how long the oldest call has been under way.", "server")
	requestsUnderWay = describe("rpc_server_requests", "Requests without an answer.", "server")
	requestsUntaken  = describe("rpc_server_requests_untaken", "Requests that the program has not taken.", "server")
	answers          = describe("rpc_server_answers_total", "Requests that were done, failed, were refused, or whose caller left before a handler began; servers that are closed count, too.", "server", "method", "result")
	clientCalls      = describe("rpc_client_calls_total", "Calls that were done, failed, lost their connection, or were left by their caller; clients that are closed count, too.", "server", "method", "result")
	late             = describe("rpc_late_calls_total", "Calls whose deadline passed before the answer, as the end saw it: client or server.", "server", "method", "end")
	minuteFailures   = describe("rpc_minute_failures", "Answers of the last minute that are errors, by code, as the end saw them.", "server", "end", "code")
	minuteAnswers    = describe("rpc_minute_answers", "Answers of the last minute.", "server", "end")
	callTimes        = describe("rpc_call_duration_seconds", "How long calls took that were made while requests were measured: of a client to the answer, of a server from the arrival of the request.", "server", "method", "end")
	reconnects       = describe("rpc_client_reconnects_total", "Connections after the first of a client.", "server")
	callersWaiting   = describe("rpc_client_callers_waiting", "Callers that wait for a place for their call, or for a connection.", "server")
	oldestCaller     = describe("rpc_oldest_caller_wait_seconds", "For how long the first caller has waited for a place or a connection.", "server")
	oldestTaken      = describe("rpc_oldest_taken_request_age_seconds", "For how long the program has had the oldest request that it has taken.", "server")
	oldestUntaken    = describe("rpc_oldest_request_wait_seconds", "For how long the oldest request has waited for a handler.", "server")
)

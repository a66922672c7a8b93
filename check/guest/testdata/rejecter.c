// rejecter ADDRESS PORT [DATA]: rejects all connection requests, with DATA as the
// private data or without any, until it is killed.
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include <rdma/rdma_cma.h>

int main(int argc, char **argv)
{
	struct addrinfo hints = {.ai_family = AF_INET}, *at;
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_event *event;
	struct rdma_cm_id *listener;
	const char *data = argc > 3 ? argv[3] : NULL;

	if (argc < 3 || !channel || getaddrinfo(argv[1], argv[2], &hints, &at) ||
	    rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, at->ai_addr) || rdma_listen(listener, 8)) {
		perror("rejecter");
		return 1;
	}
	printf("listening\n");
	fflush(stdout);
	while (!rdma_get_cm_event(channel, &event)) {
		struct rdma_cm_id *id = event->event == RDMA_CM_EVENT_CONNECT_REQUEST ? event->id : NULL;
		if (id && rdma_reject(id, data, data ? strlen(data) : 0))
			perror("rdma_reject");
		rdma_ack_cm_event(event);
		if (id)
			rdma_destroy_id(id);
	}
	perror("rdma_get_cm_event");
	return 1;
}

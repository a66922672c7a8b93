// The part of librdmacm.so.1's binary interface that this package uses; see
// abi.h. Names are the library's with gc_ for rdma_.
#ifndef GODAT_IBV_ABI_CM_H
#define GODAT_IBV_ABI_CM_H

#include <stdint.h>
#include <sys/socket.h>

struct gv_context;
struct gv_qp;

enum { GC_PS_TCP = 0x0106 };
enum { GC_OPTION_ID = 0, GC_OPTION_ID_TOS = 0 };

enum {
	GC_EVENT_ADDR_RESOLVED,
	GC_EVENT_ADDR_ERROR,
	GC_EVENT_ROUTE_RESOLVED,
	GC_EVENT_ROUTE_ERROR,
	GC_EVENT_CONNECT_REQUEST,
	GC_EVENT_CONNECT_RESPONSE,
	GC_EVENT_CONNECT_ERROR,
	GC_EVENT_UNREACHABLE,
	GC_EVENT_REJECTED,
	GC_EVENT_ESTABLISHED,
	GC_EVENT_DISCONNECTED,
	GC_EVENT_DEVICE_REMOVAL,
	GC_EVENT_MULTICAST_JOIN,
	GC_EVENT_MULTICAST_ERROR,
	GC_EVENT_ADDR_CHANGE,
	GC_EVENT_TIMEWAIT_EXIT,
};

struct gc_event_channel {
	int fd;
};

struct gc_route {
	struct sockaddr_storage src_addr;
	struct sockaddr_storage dst_addr;
	struct {
		uint64_t gids[4];
		uint16_t pkey;
	} addr;
	void *path_rec;
	int num_paths;
};

struct gc_id {
	struct gv_context *verbs;
	struct gc_event_channel *channel;
	void *context;
	struct gv_qp *qp;
	struct gc_route route;
	int ps;
	uint8_t port_num;
};

struct gc_conn_param {
	const void *private_data;
	uint8_t private_data_len;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t flow_control;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t srq;
	uint32_t qp_num;
};

struct gc_event {
	struct gc_id *id;
	struct gc_id *listen_id;
	int event;
	int status;
	union {
		struct gc_conn_param conn;
		uint8_t reserved[56]; // keeps the union as large as its unused member
	} param;
};

#endif

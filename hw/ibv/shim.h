// The interface of the provider's C half to its Go half. The C half owns the queues'
// rings and calls the device's data path; the Go half owns the connections and decides
// what happens to them.
#ifndef GODAT_IBV_SHIM_H
#define GODAT_IBV_SHIM_H

#include <stdbool.h>

#include "abi.h"
#include "abi_cm.h"

// gd_wc has the layout of hw.WC.
struct gd_wc {
	uint64_t id;
	uint32_t len;
	uint32_t imm;
	uint32_t qp;
	uint8_t status;
	uint8_t op;
	uint8_t flags;
	uint8_t pad;
	uint32_t cq;
	uint32_t pad2;
};

// Values of package hw's constants; the Go half's build compares them.
enum {
	GD_OP_SEND = 0,
	GD_OP_WRITE = 1,
	GD_OP_READ = 2,
	GD_OP_RECV = 3,
	GD_OP_RECV_INVALIDATE = 4,
	GD_OP_BIND = 5,
	GD_OP_WRITE_IMM = 8,
	GD_OP_RECV_IMM = 9,
	GD_OP_FETCH_ADD = 10,
	GD_OP_COMPARE_SWAP = 11,
	GD_OP_SEND_INVALIDATE = 24,
	GD_OP_END = 31,

	GD_WR_SIGNALED = 1,
	GD_WR_SOLICITED = 2,
	GD_WR_FENCE = 4,

	GD_WC_SOLICITED = 1,
	GD_WC_IMM = 2,
	GD_WC_INVALIDATED = 4,

	GD_SUCCESS = 0,
	GD_FLUSHED = 1,
	GD_LOCAL_LENGTH = 2,
	GD_LOCAL_EP = 3,
	GD_LOCAL_PROTECTION = 4,
	GD_REMOTE_ACCESS = 6,
	GD_TRANSPORT = 8,
};

// The kinds of request in a slot.
enum {
	GD_USER,  // a request of the owner
	GD_FAREWELL, // the write that tells the peer of an orderly end
	GD_DRAIN, // an empty request whose completion shows that the sends before it are done
};

// gd_slot is one request. The owner fills it in before the post. Its segments lie in
// the queue's sges, at the same index.
struct gd_slot {
	uint64_t id;
	uint64_t raddr;
	uint64_t operand;
	uint64_t compare;
	uint64_t len; // bytes of all segments
	uint32_t rkey;
	uint32_t imm;
	uint16_t nsge;
	uint8_t op;
	uint8_t flags;
	uint8_t kind;
	uint8_t done; // a send whose completion waits to be handed on
	uint8_t copied; // a send that went inline: its memory has been read
	// The completion that waits to be handed on.
	uint8_t wc_status;
	uint8_t wc_op;
	uint8_t wc_flags;
	uint32_t wc_len;
	uint32_t wc_imm;
	uint32_t next; // slot of a shared queue: the next in its list
	struct gv_mw *mw; // of a bind
	struct gv_mr *bind_mr;
	uint32_t bind_access;
	uint32_t bind_key;
};

// What the event goroutine must handle for a queue pair.
enum {
	GD_NOTICE_FAILED = 1,  // a request failed
	GD_NOTICE_FLUSHED = 2, // a request was flushed, and the cause is not known yet
	GD_NOTICE_DRAINED = 4, // the sends before gd_drain are done
	GD_NOTICE_FAREWELL = 8, // the write of gd_post_farewell succeeded
	GD_NOTICE_FETCHED = 16, // the read of gd_fetch_farewell completed
};

enum { GD_BATCH = 32 }; // most requests that one call posts

struct gd_device;
struct gd_qp;
struct gd_cq;
struct gd_srq;

// gd_device_config is what the Go half knows of a device.
struct gd_device_config {
	bool signal_all; // signal every send, since markers don't work on this device
	bool siw;        // the device is soft-iWARP, whose faults the C half works around
	bool plain_ib;   // the link layer is InfiniBand, not Ethernet
	uint64_t max_message, max_rdma;
	uint8_t status_of[2][64]; // hw.Status by verbs' status: of sends, of receives
};

// gd_fds are the descriptors that the event goroutine polls, and those that end a wait.
struct gd_fds {
	int cm, async, notice;
	int channel, wake;
};

// gd_rings are the rings into which the owner of a queue pair writes its requests.
struct gd_rings {
	struct gd_slot *send_slots, *recv_slots;
	struct gv_sge *send_sges, *recv_sges;
	uint32_t send_mask, recv_mask, send_segs, recv_segs, qp_num;
};

struct gd_srq_ring {
	struct gd_slot *slots;
	struct gv_sge *sges;
	uint32_t *staged;
	uint32_t segs;
};

struct gd_counters {
	uint64_t posts, polls, posted, polled, doorbells;
};

// gd_event is a connection event, copied and acknowledged.
struct gd_event {
	struct gc_id *id;
	uint64_t key;    // of the id
	uint64_t parent; // of the listener, in a request
	int event;
	int status;
	uint8_t reads_in, reads_out; // responder_resources, initiator_depth
	uint8_t len;
	uint8_t data[256];
};

// gd_view is what a queue pair is like at one moment.
struct gd_view {
	bool idle;    // no posted send is outstanding
	bool unready; // no posted receive is left for a send of the peer
	bool heard;   // a receive has completed in this life
	bool reaches; // of a pair: the peer gets what is posted now, as far as this side knows
	bool ended;   // both queues have handed on their OpEnd
	// The first request that failed by itself, without being flushed; status 0: none.
	uint32_t status, vendor;
	bool recv;
	uint8_t word; // its hw.Status, which can be more precise than the verbs status
};

// gd_async is an asynchronous event, copied and acknowledged.
struct gd_async {
	uint64_t handle; // of the queue, queue pair or shared queue that it is about
	uint32_t qp_num; // of the device's queue pair, if it is about one
	int type;
};

struct gd_qp_config {
	struct gv_pd *pd;
	struct gd_cq *send_cq, *recv_cq;
	struct gd_srq *srq;
	uint64_t handle, send_end, recv_end;
	uint32_t number, send_depth, recv_depth, send_segs, recv_segs, inline_max;
	uint8_t port;
	bool iwarp;
	uint32_t access;
};

// gd_up holds the attributes with which a queue pair goes into service on InfiniBand and
// RoCE, and the parameters of rdma_connect and rdma_accept.
struct gd_up {
	uint8_t reads_in, reads_out, least_out, min_rnr, rnr_retry, timeout, retry;
};

// gd_path is the way from a queue pair to one that is paired with it.
struct gd_path {
	uint8_t port, sgid_index, hop_limit, traffic_class, sl, mtu; // mtu as verbs number it
	bool global;
	uint8_t dgid[16];
	uint16_t dlid, pkey_index;
	uint32_t flow_label, qpn, rq_psn, sq_psn;
};

// Functions that can fail return an errno or 0, or NULL with errno set, unless a comment
// at the function says otherwise.

// shim_lib.c
int gd_load(const char **missing);
struct gv_device **gd_devices(int *n);
void gd_free_devices(struct gv_device **list);

// shim_device.c
struct gd_device *gd_open(struct gv_device *d);
int gd_configure(struct gd_device *d, const struct gd_device_config *cfg);
struct gd_fds gd_watch_fds(struct gd_device *d);
struct gd_wc *gd_out(struct gd_device *d);
struct gd_counters gd_count(struct gd_device *d);
int gd_transport(struct gd_device *d);
void gd_wake(struct gd_device *d);
void gd_wake_events(struct gd_device *d);
void gd_quiet_events(struct gd_device *d);
void gd_close(struct gd_device *d);
int gd_query(struct gd_device *d, struct gv_device_attr *attr, struct gv_port_attr *port, int n);
int gd_get_async(struct gd_device *d, struct gd_async *a);
struct gv_pd *gd_alloc_pd(struct gd_device *d);
int gd_free_pd(struct gv_pd *pd);
struct gd_cq *gd_new_cq(struct gd_device *d, int depth, uint64_t handle, uint32_t tag, bool solicited);
int gd_close_cq(struct gd_cq *cq);

// shim_memory.c
struct gv_mr *gd_register(struct gd_device *d, struct gv_pd *pd, uintptr_t addr, uint64_t len, uint32_t access);
struct gv_mr *gd_register_at(struct gv_pd *pd, uintptr_t addr, uint64_t len, uint64_t iova, uint32_t access);
int gd_deregister(struct gd_device *d, struct gv_mr *mr);
bool gd_blame(struct gd_qp *q, uint32_t lkey);
void gd_settle_copies(void);
struct gv_mw *gd_new_window(struct gv_pd *pd, bool own);
int gd_close_window(struct gv_mw *mw);

// shim_qp.c
struct gd_qp *gd_new_qp(struct gd_device *d, const struct gd_qp_config *cfg);
int gd_renew_qp(struct gd_qp *q, const struct gd_qp_config *cfg, struct gv_qp **old);
struct gv_qp *gd_free_qp(struct gd_qp *q, int keep);
int gd_destroy_hw(struct gv_qp *qp);
int gd_bring_up(struct gd_qp *q, struct gc_id *id, const struct gd_up *up, uint32_t access);
void gd_kill(struct gd_qp *q);
void gd_over(struct gd_qp *q);
void gd_force(struct gd_qp *q);
void gd_last_wqe(struct gd_qp *q);
void gd_hold(struct gd_qp *q, bool on);
void gd_tell(struct gd_qp *q, int delta);
struct gd_rings gd_rings_of(struct gd_qp *q);
struct gd_view gd_look(struct gd_qp *q);

// shim_pair.c
int gd_pair(struct gd_qp *q, const struct gd_path *p, const struct gd_up *up, uint32_t access);

// shim_post.c
int gd_post_send(struct gd_qp *q, uint32_t n, uint32_t *taken);
int gd_post_recv(struct gd_qp *q, uint32_t n, uint32_t *taken);
int gd_post_farewell(struct gd_qp *q, uint64_t from, uint32_t lkey, uint64_t to, uint32_t rkey, uint32_t *posted);
int gd_fetch_farewell(struct gd_qp *q, uint64_t into, uint32_t lkey, uint64_t from, uint32_t rkey);
void gd_nudge(struct gd_qp *q, bool read);
int gd_drain(struct gd_qp *q, uint32_t *posted);
void gd_probe(struct gd_qp *q);

// shim_srq.c
struct gd_srq *gd_new_srq(struct gd_device *d, struct gv_pd *pd, uint32_t room, uint32_t segs, uint64_t handle);
int gd_outstanding(struct gd_srq *s);
int gd_stage_srq(struct gd_srq *s, uint32_t n);
int gd_post_srq(struct gd_srq *s, uint32_t n, uint32_t *taken);
int gd_arm_srq(struct gd_srq *s, uint32_t limit);
bool gd_is_low(struct gd_srq *s);
bool gd_disarm_srq(struct gd_srq *s);
int gd_close_srq(struct gd_srq *s);
struct gd_srq_ring gd_srq_ring_of(struct gd_srq *s);

// shim_poll.c, shim_wait.c
int gd_poll(struct gd_device *d, int max);
int gd_arm(struct gd_device *d);
int gd_wait(struct gd_device *d);
bool gd_begin_wait(struct gd_device *d);
int gd_try_wait(struct gd_device *d);
void gd_end_wait(struct gd_device *d);
uint32_t gd_next_notice(struct gd_device *d, uint64_t *handle, uint32_t *qp_num);

// shim_cm.c
int gd_cm_next(struct gd_device *d, struct gd_event *out);
int gd_cm_new(struct gd_device *d, uint64_t key, struct gc_id **id);
int gd_cm_class(struct gc_id *id, uint8_t class);
void gd_cm_set_key(struct gc_id *id, uint64_t key);
int gd_cm_bind(struct gc_id *id, struct sockaddr_storage *addr);
int gd_cm_listen(struct gc_id *id, int backlog);
int gd_cm_resolve(struct gc_id *id, struct sockaddr_storage *src, struct sockaddr_storage *dst, int ms);
int gd_cm_route(struct gc_id *id, int ms);
int gd_cm_connect(struct gc_id *id, const struct gd_up *up, uint32_t qp_num, bool srq, const uint8_t *data, int len);
int gd_cm_accept(struct gc_id *id, const struct gd_up *up, uint32_t qp_num, bool srq, const uint8_t *data, int len);
int gd_cm_reject(struct gc_id *id, const uint8_t *data, int len);
int gd_cm_establish(struct gc_id *id);
int gd_cm_notify(struct gc_id *id);
int gd_cm_disconnect(struct gc_id *id);
int gd_cm_destroy(struct gc_id *id);
const char *gd_cm_device(struct gc_id *id);
void gd_cm_addresses(struct gc_id *id, struct sockaddr_storage *local, struct sockaddr_storage *remote);

#endif

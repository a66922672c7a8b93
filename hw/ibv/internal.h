// The C half's own structures.
//
// Locks: a thread holds a queue pair's mu while it posts to the queue pair or kills it,
// and the device's mu while it takes completions or changes the tables of queue pairs
// and completion queues. A holder of a queue pair's mu may take the device's, never the
// reverse. A holder of the device's mu waits for no other thread, but for
// settle_inlining, which waits for a post to finish copying.
#ifndef GODAT_IBV_INTERNAL_H
#define GODAT_IBV_INTERNAL_H

#include <stdatomic.h>

#include "lib.h"
#include "shim.h"

enum {
	GD_REGION_BUCKETS = 1024,
	GD_RECENT = 256,
	GD_MOST_QPS = 1 << 18,
	GD_QP_CHUNK = 4096,
	GD_RAW = 64,         // completions taken from the device at a time
	GD_SPARE_SLOTS = 2,  // of a send queue, for the provider's own requests
	GD_GENERATION = 0xfff,
	GD_POSITION = 0x3fffffff,
};

// Values of gd_queue.failed: a request was flushed; a request failed by itself.
enum { GD_WAS_FLUSHED = 1, GD_BY_ITSELF };

#define GD_NO_SLOT (~0u)

// The wr_id of a work request of a queue pair is
// generation:12 index:18 recv:1 marker:1 position:30, of a shared queue
// 1:1 queue:31 slot:32.
#define GD_ID_SHARED (1ull << 63)
#define GD_ID_RECV (1ull << 31)
#define GD_ID_MARKER (1ull << 30)
#define GD_ID_FETCHED (GD_ID_MARKER | 1)
#define GD_ID_NUDGE (GD_ID_MARKER | 2)

// gd_queue is one queue of a queue pair. Positions count requests and wrap at 2^32;
// a position's slot is pos & mask. done <= reaped <= posted. Requests between hw_end and
// posted were posted after the queue pair's death.
struct gd_queue {
	struct gd_slot *slots;
	struct gv_sge *sges; // segs per slot
	uint32_t mask;
	uint32_t segs;
	uint32_t tag;        // of the completion queue
	uint64_t end_id;     // of OpEnd
	struct gd_cq *cq;

	_Atomic uint32_t posted; // written by the owner, under the queue pair's mu
	// Under the device's mu:
	uint32_t reaped; // behind the last request whose completion was taken from the device
	uint32_t done;   // behind the last request whose completion was handed on to Poll
	uint32_t hw_end; // valid when the queue pair is dead
	uint8_t ended;   // OpEnd was handed on
	// Of a send queue:
	uint32_t recorded; // number of slots whose completion waits to be handed on
	uint8_t marked;    // the marker completed
	uint8_t failed;    // the gravest failure handed on: 0, GD_WAS_FLUSHED or GD_BY_ITSELF
	uint8_t blamed;    // the first flushed request that names the region blame gets a protection error
	uint32_t blame;    // that region's local key
};

struct gd_qp {
	struct gd_device *dev;
	uint64_t handle; // the Go half's key of the queue pair
	uint32_t index;  // in the device's table
	uint32_t generation;
	uint32_t number; // hw.QPConfig.Number
	uint32_t inline_max;
	struct gd_srq *srq;

	pthread_mutex_t mu;
	struct gv_qp *qp;
	struct gd_queue sq, rq;
	struct gv_send_wr *send_wrs;
	struct gv_recv_wr *recv_wrs;
	uint32_t batch; // length of send_wrs and of recv_wrs
	uint32_t last_signaled; // the position behind the last signaled send

	// Under dev->mu, once the queue pair is in the table:
	uint8_t dead;      // in error for good; the device is given no more requests
	uint8_t hold;      // completions wait until the owner was told of the connection
	uint8_t heard;     // a receive has completed
	uint8_t probing;   // gd_probe's request is outstanding
	uint8_t answered;  // the peer has answered one
	uint8_t over;      // Break has let the queues end
	uint8_t forced;    // alarmForce went off: polls no longer wait for the device to flush
	uint8_t last_wqe;  // the device takes no more shared receives for it
	uint8_t draining;  // notice when the sends before drain_at are done
	uint8_t dry;       // 1: they are done; 2: and the notice was given
	uint8_t failed_recv; // the first request that failed by itself was a receive
	uint8_t failed_word;    // its hw.Status, once status_of has found it
	uint32_t failed_status; // its verbs status; 0: no request has failed by itself
	uint32_t failed_vendor; // its vendor error
	uint8_t listed;    // in the device's pending list
	uint32_t drain_at;
	uint64_t dry_seq; // the device's poll count when dry became 1
	uint64_t killed_seq; // the device's poll count when the queue pair was killed
	uint32_t notices;
	struct gd_qp *next_notice;
	struct gd_qp *next_pending;
	uint32_t srq_head, srq_tail; // shared receives whose completions wait to be handed on
	_Atomic int telling;  // facts not yet told: OpEnd waits until it is 0
	_Atomic int inlining; // a post may be copying from its segments
};

static inline uint64_t gd_wr_id(const struct gd_qp *q, int recv, uint32_t pos)
{
	return (uint64_t)q->generation << 50 | (uint64_t)q->index << 32 | (recv ? GD_ID_RECV : 0) | (pos & GD_POSITION);
}

struct gd_cq {
	struct gd_device *dev;
	struct gv_cq *cq;
	uint64_t handle;
	uint32_t tag;
	bool solicited;
	uint8_t armed;     // under dev->mu
	uint64_t empty_at; // the device's poll count when a poll last found it empty
};

struct gd_srq {
	struct gd_device *dev;
	struct gv_srq *srq;
	uint64_t handle;
	uint32_t index;
	pthread_mutex_t mu;
	struct gd_slot *slots;
	struct gv_sge *sges;
	struct gv_recv_wr *wrs;
	uint32_t nslots, segs, batch;
	uint32_t *staged; // slots reserved for the next post
	uint32_t nstaged;
	uint32_t free_head, nfree; // free slots, linked by next
	uint32_t limit; // the armed low watermark; 0: none
};

// gd_region describes registered memory; the device finds it by its local key.
struct gd_region {
	struct gd_region *next;
	uint32_t lkey;
	uint32_t access;
	uint64_t base, len;
	struct gv_pd *pd;
};

// gd_recent caches a region where posts find it without a lock; see gd_inlinable.
struct gd_recent {
	_Atomic uint32_t seq;
	_Atomic uint32_t lkey;
	_Atomic uint64_t base, len;
	_Atomic(struct gv_pd *) pd;
};

struct gd_device {
	struct gv_context *ctx;
	struct gv_comp_channel *channel;
	struct gc_event_channel *cm;
	struct gv_cq *ballast; // see gd_configure
	int wake_fd;   // ends Wait and Sleep
	int notice_fd; // wakes the event goroutine
	struct gd_device_config cfg;
	_Atomic int attention; // a poll has something to do for which no event will come
	_Atomic int sleeping;  // the poller is behind gd_begin_wait

	pthread_mutex_t mu;
	struct gd_qp **qps[GD_MOST_QPS / GD_QP_CHUNK];
	uint32_t *generations;
	uint32_t nqps;     // number of indexes ever used
	uint32_t *free_qps;
	uint32_t free_at, free_len, free_cap;
	struct gd_cq **cqs;
	uint32_t ncqs, cap_cqs, turn;
	uint8_t armed; // between gd_arm and gd_end_wait
	struct gd_srq **srqs;
	uint32_t nsrqs;
	struct gd_qp *pending;
	struct gd_qp *notice_list;
	uint8_t unfinished; // this poll leaves work to the next
	uint8_t noticed; // the event goroutine must be woken
	struct gd_qp **numbers[1 << 12]; // by queue pair number, two levels
	uint64_t seq;
	struct gd_wc *out;
	uint32_t out_cap;

	pthread_mutex_t regions_mu;
	struct gd_region *regions[GD_REGION_BUCKETS];
	struct gd_recent recent[GD_RECENT];

	_Atomic uint64_t posts, polls, posted, polled, doorbells; // see Counters
};

void gd_signal(int fd);
void gd_attend(struct gd_device *d);
int gd_arm_cq(struct gd_cq *cq);
int gd_cm_open(struct gd_device *d);
void gd_list(struct gd_qp *q);
void gd_repost_recvs(struct gd_qp *q);
void gd_notice(struct gd_qp *q, uint32_t bits);
int gd_settle(struct gd_device *d, struct gd_wc *out, int max);
void gd_give_back(struct gd_srq *s, uint32_t slot);
int gd_names(struct gd_queue *k, uint32_t pos, uint32_t lkey);
int gd_too_long(const struct gd_device *d, const struct gd_slot *s);
int gd_inlinable(struct gd_device *d, struct gv_pd *pd, const struct gv_sge *s, int n);
int gd_sges_valid(struct gd_device *d, struct gv_pd *pd, const struct gv_sge *s, int n, uint32_t access);

static inline struct gd_slot *slot_at(struct gd_queue *k, uint32_t pos) { return &k->slots[pos & k->mask]; }

static inline struct gv_sge *sges_at(struct gd_queue *k, uint32_t pos)
{
	return &k->sges[(size_t)(pos & k->mask) * k->segs];
}

#endif

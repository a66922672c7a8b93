//go:build linux && cgo

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static uint32_t power_of_two(uint32_t n)
{
	uint32_t p = 4;
	while (p < n)
		p *= 2;
	return p;
}

static int new_queue(struct gd_queue *k, uint32_t depth, uint32_t segs, struct gd_cq *cq, uint64_t end_id)
{
	uint32_t n = power_of_two(depth + GD_SPARE_SLOTS);
	k->mask = n - 1;
	k->segs = segs ? segs : 1;
	k->cq = cq;
	k->tag = cq->tag;
	k->end_id = end_id;
	k->slots = calloc(n, sizeof *k->slots);
	k->sges = calloc((size_t)n * k->segs, sizeof *k->sges);
	return k->slots && k->sges ? 0 : ENOMEM;
}

static void free_queue(struct gd_queue *k)
{
	free(k->slots);
	free(k->sges);
}

// enter puts a queue pair into the device's table. It reuses the index that has been
// free longest, and only when at least 64 are free or all have been used.
static int enter(struct gd_qp *q)
{
	struct gd_device *d = q->dev;
	uint32_t i;
	if (d->nqps < GD_MOST_QPS && d->free_len < 64)
		i = d->nqps;
	else if (d->free_len > 0)
		i = d->free_qps[d->free_at++ % d->free_cap];
	else
		return ENOMEM;
	if (i == d->nqps) {
		struct gd_qp ***chunk = &d->qps[i / GD_QP_CHUNK];
		if (*chunk == NULL && (*chunk = calloc(GD_QP_CHUNK, sizeof **chunk)) == NULL)
			return ENOMEM;
		d->nqps++;
	} else {
		d->free_len--;
	}
	q->index = i;
	q->generation = ++d->generations[i] & GD_GENERATION;
	d->qps[i / GD_QP_CHUNK][i % GD_QP_CHUNK] = q;
	return 0;
}

// unlist takes a queue pair off the device's lists.
static void unlist(struct gd_qp *q)
{
	struct gd_device *d = q->dev;
	for (struct gd_qp **p = &d->pending; *p; p = &(*p)->next_pending) {
		if (*p == q) {
			*p = q->next_pending;
			break;
		}
	}
	for (struct gd_qp **p = &d->notice_list; *p; p = &(*p)->next_notice) {
		if (*p == q) {
			*p = q->next_notice;
			break;
		}
	}
	q->listed = 0;
	q->notices = 0;
}

// leave takes a queue pair out of the device's table. The list of free indexes has room:
// admit made it as long as the table.
static void leave(struct gd_qp *q)
{
	struct gd_device *d = q->dev;
	unlist(q);
	d->qps[q->index / GD_QP_CHUNK][q->index % GD_QP_CHUNK] = NULL;
	d->free_qps[(d->free_at + d->free_len++) % d->free_cap] = q->index;
}

// number sets the queue pair of the queue pair number n, under dev->mu.
static int number(struct gd_device *d, uint32_t n, struct gd_qp *q)
{
	struct gd_qp ***row = &d->numbers[n >> 12 & 0xfff];
	if (*row == NULL && (*row = calloc(1 << 12, sizeof **row)) == NULL)
		return ENOMEM;
	(*row)[n & 0xfff] = q;
	return 0;
}

static struct gv_qp *create(const struct gd_qp_config *cfg, uint32_t *inline_max)
{
	struct gv_qp_init_attr a = {
		.qp_context = (void *)(uintptr_t)cfg->handle,
		.send_cq = cfg->send_cq->cq,
		.recv_cq = cfg->recv_cq->cq,
		.srq = cfg->srq ? cfg->srq->srq : NULL,
		.qp_type = GV_QPT_RC,
		.cap = {
			.max_send_wr = cfg->send_depth + GD_SPARE_SLOTS + 2, // the marker and gd_fetch_farewell's read
			.max_recv_wr = cfg->srq ? 0 : cfg->recv_depth + 1,
			.max_send_sge = cfg->send_segs ? cfg->send_segs : 1,
			.max_recv_sge = cfg->srq ? 0 : cfg->recv_segs ? cfg->recv_segs : 1,
			.max_inline_data = cfg->inline_max,
		},
	};
	struct gv_qp *qp = gd_lib.create_qp(cfg->pd, &a);
	if (qp == NULL && cfg->inline_max) {
		a.cap.max_inline_data = 0;
		qp = gd_lib.create_qp(cfg->pd, &a);
	}
	*inline_max = a.cap.max_inline_data < cfg->inline_max ? a.cap.max_inline_data : cfg->inline_max;
	return qp;
}

// initialise brings a queue pair to INIT, where it takes receives.
static int initialise(struct gv_qp *qp, const struct gd_qp_config *cfg)
{
	struct gv_qp_attr a = {
		.qp_state = GV_QPS_INIT,
		.port_num = cfg->port,
		.qp_access_flags = cfg->access,
	};
	int mask = GV_QP_STATE | GV_QP_ACCESS_FLAGS | GV_QP_PORT | (cfg->iwarp ? 0 : GV_QP_PKEY_INDEX);
	return gd_lib.modify_qp(qp, &a, mask);
}

static struct gv_qp *create_ready(const struct gd_qp_config *cfg, uint32_t *inline_max)
{
	struct gv_qp *qp = create(cfg, inline_max);
	if (qp == NULL)
		return NULL;
	int err = initialise(qp, cfg);
	if (err == 0)
		return qp;
	gd_lib.destroy_qp(qp);
	errno = err;
	return NULL;
}

static int admit(struct gd_qp *q)
{
	struct gd_device *d = q->dev;
	pthread_mutex_lock(&d->mu);
	int err = 0;
	if (d->free_cap == 0) {
		d->free_cap = GD_MOST_QPS;
		d->free_qps = calloc(d->free_cap, sizeof *d->free_qps);
		err = d->free_qps ? 0 : ENOMEM;
	}
	if (err == 0)
		err = enter(q);
	if (err == 0 && (err = number(d, q->qp->qp_num, q)) != 0)
		leave(q);
	pthread_mutex_unlock(&d->mu);
	return err;
}

static void release(struct gd_qp *q)
{
	if (q->qp)
		gd_lib.destroy_qp(q->qp);
	free_queue(&q->sq);
	free_queue(&q->rq);
	free(q->send_wrs);
	free(q->recv_wrs);
	pthread_mutex_destroy(&q->mu);
	free(q);
}

struct gd_qp *gd_new_qp(struct gd_device *d, const struct gd_qp_config *cfg)
{
	struct gd_qp *q = calloc(1, sizeof *q);
	if (q == NULL)
		return NULL;
	q->dev = d;
	q->handle = cfg->handle;
	q->number = cfg->number;
	q->srq = cfg->srq;
	q->srq_head = q->srq_tail = GD_NO_SLOT;
	pthread_mutex_init(&q->mu, NULL);
	int err = new_queue(&q->sq, cfg->send_depth, cfg->send_segs, cfg->send_cq, cfg->send_end);
	if (err == 0)
		err = new_queue(&q->rq, cfg->srq ? 0 : cfg->recv_depth, cfg->recv_segs, cfg->recv_cq, cfg->recv_end);
	q->batch = GD_BATCH;
	q->send_wrs = calloc(q->batch, sizeof *q->send_wrs);
	q->recv_wrs = calloc(q->batch, sizeof *q->recv_wrs);
	if (err == 0 && (q->send_wrs == NULL || q->recv_wrs == NULL))
		err = ENOMEM;
	if (err == 0 && (q->qp = create_ready(cfg, &q->inline_max)) == NULL)
		err = errno ? errno : ENOMEM;
	if (err == 0)
		err = admit(q);
	if (err == 0)
		return q;
	release(q);
	errno = err;
	return NULL;
}

static void renew_queue(struct gd_queue *k)
{
	atomic_store(&k->posted, 0);
	k->reaped = k->done = k->hw_end = k->recorded = 0;
	k->ended = k->marked = k->failed = k->blamed = 0;
}

// gd_renew_qp replaces the device's queue pair of one that has ended, for its next life:
// an iWARP queue pair can't leave its final state. The caller destroys *old.
int gd_renew_qp(struct gd_qp *q, const struct gd_qp_config *cfg, struct gv_qp **old)
{
	struct gd_device *d = q->dev;
	struct gv_qp *fresh = create_ready(cfg, &q->inline_max);
	if (fresh == NULL)
		return errno ? errno : ENOMEM;
	pthread_mutex_lock(&q->mu);
	pthread_mutex_lock(&d->mu);
	int err = number(d, fresh->qp_num, q);
	if (err == 0) {
		if (q->qp->qp_num != fresh->qp_num)
			number(d, q->qp->qp_num, NULL);
		*old = q->qp;
		q->qp = fresh;
		q->generation = ++d->generations[q->index] & GD_GENERATION;
		renew_queue(&q->sq);
		renew_queue(&q->rq);
		q->last_signaled = 0;
		q->dead = q->hold = q->heard = q->over = q->forced = q->last_wqe = q->draining = q->dry = 0;
		q->probing = q->answered = 0;
		q->failed_status = q->failed_word = 0;
		unlist(q);
	}
	pthread_mutex_unlock(&d->mu);
	pthread_mutex_unlock(&q->mu);
	if (err)
		gd_lib.destroy_qp(fresh);
	return err;
}

// gd_free_qp frees a queue pair. With keep it returns the device's queue pair, which the
// caller destroys; otherwise it destroys that too and returns NULL.
struct gv_qp *gd_free_qp(struct gd_qp *q, int keep)
{
	struct gd_device *d = q->dev;
	struct gv_qp *left = q->qp;
	pthread_mutex_lock(&d->mu);
	leave(q);
	number(d, q->qp->qp_num, NULL);
	pthread_mutex_unlock(&d->mu);
	if (keep)
		q->qp = NULL;
	release(q);
	return keep ? left : NULL;
}

struct gd_rings gd_rings_of(struct gd_qp *q)
{
	return (struct gd_rings){
		.send_slots = q->sq.slots, .send_sges = q->sq.sges, .send_mask = q->sq.mask, .send_segs = q->sq.segs,
		.recv_slots = q->rq.slots, .recv_sges = q->rq.sges, .recv_mask = q->rq.mask, .recv_segs = q->rq.segs,
		.qp_num = q->qp->qp_num,
	};
}

// gd_look describes a queue pair. A pair reaches its peer when the peer has answered something,
// or sent something, or requests wait for it anyway.
struct gd_view gd_look(struct gd_qp *q)
{
	pthread_mutex_lock(&q->dev->mu);
	bool idle = q->sq.done == atomic_load(&q->sq.posted);
	struct gd_view v = {
		.idle = idle,
		.unready = q->srq ? gd_outstanding(q->srq) == 0 : q->rq.done == atomic_load(&q->rq.posted),
		.heard = q->heard,
		.reaches = q->heard || q->answered || q->sq.done || !idle,
		.ended = q->sq.ended && q->rq.ended,
		.status = q->failed_status, .vendor = q->failed_vendor, .recv = q->failed_recv, .word = q->failed_word,
	};
	pthread_mutex_unlock(&q->dev->mu);
	return v;
}

int gd_destroy_hw(struct gv_qp *qp) { return gd_lib.destroy_qp(qp); }

static int step_up(struct gd_qp *q, struct gc_id *id, const struct gd_up *up, uint32_t access, int state)
{
	struct gv_qp_attr a = {.qp_state = state};
	int mask = 0;
	if (gd_lib.init_qp_attr(id, &a, &mask) != 0)
		return errno;
	if (q->dev->cfg.plain_ib) // an old kernel sets mask bits that are for Ethernet only
		mask &= ~0xe00000;
	switch (state) {
	case GV_QPS_INIT:
		a.qp_access_flags = access;
		mask |= GV_QP_ACCESS_FLAGS;
		break;
	case GV_QPS_RTR:
		a.max_dest_rd_atomic = up->reads_in;
		a.min_rnr_timer = up->min_rnr;
		break;
	case GV_QPS_RTS:
		// With 0 a read would never leave this side. With 1 it does, and the peer refuses it.
		a.max_rd_atomic = up->reads_out ? up->reads_out : up->least_out;
		a.rnr_retry = up->rnr_retry;
		a.retry_cnt = up->retry;
		a.timeout = up->timeout;
		break;
	}
	return gd_lib.modify_qp(q->qp, &a, mask);
}

// gd_bring_up brings a queue pair into service with the attributes on which both sides
// agreed. It returns ECANCELED when the queue pair is dead already.
int gd_bring_up(struct gd_qp *q, struct gc_id *id, const struct gd_up *up, uint32_t access)
{
	static const int states[] = {GV_QPS_INIT, GV_QPS_RTR, GV_QPS_RTS};
	pthread_mutex_lock(&q->mu);
	int err = q->dead ? ECANCELED : 0;
	for (int i = 0; i < 3 && err == 0; i++)
		err = step_up(q, id, up, access, states[i]);
	pthread_mutex_unlock(&q->mu);
	return err;
}

// post_marker posts a request that completes when all sends before it have been flushed.
// It is needed when the last of them is not signaled and may have succeeded.
static void post_marker(struct gd_qp *q)
{
	struct gv_send_wr *bad = NULL, wr = {
		.wr_id = gd_wr_id(q, 0, 0) | GD_ID_MARKER,
		.opcode = GV_WR_RDMA_WRITE,
		.send_flags = GV_SEND_SIGNALED,
	};
	q->qp->context->ops.post_send(q->qp, &wr, &bad); // when it fails, alarmForce ends the queue
}

// gd_kill takes a queue pair out of service for good: the device flushes the requests
// that it was given, and is given no more.
void gd_kill(struct gd_qp *q)
{
	struct gd_device *d = q->dev;
	pthread_mutex_lock(&q->mu);
	if (!q->dead) {
		struct gv_qp_attr a = {.qp_state = GV_QPS_ERR};
		gd_lib.modify_qp(q->qp, &a, GV_QP_STATE);
		uint32_t sends = atomic_load(&q->sq.posted);
		int marked = !d->cfg.signal_all && sends != q->last_signaled;
		if (marked)
			post_marker(q);
		pthread_mutex_lock(&d->mu);
		q->sq.hw_end = sends;
		q->rq.hw_end = atomic_load(&q->rq.posted);
		q->dead = 1;
		q->hold = 0;
		q->killed_seq = d->seq;
		gd_list(q);
		pthread_mutex_unlock(&d->mu);
	}
	pthread_mutex_unlock(&q->mu);
	gd_attend(d);
}

static void mark(struct gd_qp *q, uint8_t *flag, uint8_t value)
{
	pthread_mutex_lock(&q->dev->mu);
	*flag = value;
	gd_list(q);
	pthread_mutex_unlock(&q->dev->mu);
	gd_attend(q->dev);
}

void gd_over(struct gd_qp *q) { mark(q, &q->over, 1); }
void gd_force(struct gd_qp *q) { mark(q, &q->forced, 1); }
void gd_last_wqe(struct gd_qp *q) { mark(q, &q->last_wqe, 1); }

// gd_hold makes completions wait while on is set. A dead queue pair's never wait.
void gd_hold(struct gd_qp *q, bool on)
{
	pthread_mutex_lock(&q->dev->mu);
	q->hold = on && !q->dead;
	int held = q->listed;
	pthread_mutex_unlock(&q->dev->mu);
	if (held && !on)
		gd_attend(q->dev);
}

// gd_tell changes the count of facts that are not yet told. No queue ends while it is
// above 0.
void gd_tell(struct gd_qp *q, int delta)
{
	atomic_fetch_add(&q->telling, delta);
	pthread_mutex_lock(&q->dev->mu);
	int over = q->over;
	pthread_mutex_unlock(&q->dev->mu);
	if (over)
		gd_attend(q->dev);
}

// gd_list puts a queue pair on the pending list, for gd_settle, under dev->mu.
void gd_list(struct gd_qp *q)
{
	if (q->listed)
		return;
	q->listed = 1;
	q->next_pending = q->dev->pending;
	q->dev->pending = q;
}

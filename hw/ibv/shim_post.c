//go:build linux && cgo

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "internal.h"

static const int opcodes[32] = {
	[GD_OP_SEND] = GV_WR_SEND,
	[GD_OP_WRITE] = GV_WR_RDMA_WRITE,
	[GD_OP_READ] = GV_WR_RDMA_READ,
	[GD_OP_BIND] = GV_WR_BIND_MW,
	[GD_OP_WRITE_IMM] = GV_WR_RDMA_WRITE_WITH_IMM,
	[GD_OP_FETCH_ADD] = GV_WR_ATOMIC_FETCH_AND_ADD,
	[GD_OP_COMPARE_SWAP] = GV_WR_ATOMIC_CMP_AND_SWP,
	[GD_OP_SEND_INVALIDATE] = GV_WR_SEND_WITH_INV,
};

static void build_bind(struct gv_send_wr *wr, const struct gd_slot *s)
{
	wr->bind_mw.mw = s->mw;
	wr->bind_mw.rkey = s->bind_key;
	wr->bind_mw.bind_info.mr = s->bind_mr;
	wr->bind_mw.bind_info.addr = s->raddr;
	wr->bind_mw.bind_info.length = s->operand;
	wr->bind_mw.bind_info.mw_access_flags = s->bind_access;
}

// gd_too_long reports whether a request moves more than the device can.
int gd_too_long(const struct gd_device *d, const struct gd_slot *s)
{
	switch (s->op) {
	case GD_OP_SEND:
	case GD_OP_SEND_INVALIDATE:
		return s->len > d->cfg.max_message;
	case GD_OP_WRITE:
	case GD_OP_WRITE_IMM:
	case GD_OP_READ:
		return s->len > d->cfg.max_rdma;
	}
	return 0;
}

static int copyable(const struct gd_device *d, uint8_t op)
{
	// Soft-iWARP refuses inline data of other operations (siw_activate_tx_from_sq).
	return op == GD_OP_SEND || op == GD_OP_WRITE || op == GD_OP_WRITE_IMM || (op == GD_OP_SEND_INVALIDATE && !d->cfg.siw);
}

// build makes the device's request out of a slot.
static void build(struct gd_qp *q, uint32_t pos, struct gv_send_wr *wr)
{
	struct gd_slot *s = slot_at(&q->sq, pos);
	s->copied = 0;
	memset(wr, 0, sizeof *wr);
	wr->wr_id = gd_wr_id(q, 0, pos);
	wr->opcode = opcodes[s->op & 31];
	wr->sg_list = sges_at(&q->sq, pos);
	wr->num_sge = s->nsge;
	if (s->flags & GD_WR_SIGNALED || q->dev->cfg.signal_all)
		wr->send_flags |= GV_SEND_SIGNALED;
	if (s->flags & GD_WR_SOLICITED)
		wr->send_flags |= GV_SEND_SOLICITED;
	if (s->flags & GD_WR_FENCE)
		wr->send_flags |= GV_SEND_FENCE;
	wr->imm_data = s->op == GD_OP_SEND_INVALIDATE ? s->imm : htonl(s->imm);
	if (s->op == GD_OP_FETCH_ADD || s->op == GD_OP_COMPARE_SWAP) {
		wr->wr.atomic.remote_addr = s->raddr;
		wr->wr.atomic.rkey = s->rkey;
		wr->wr.atomic.compare_add = s->op == GD_OP_FETCH_ADD ? s->operand : s->compare;
		wr->wr.atomic.swap = s->operand;
	} else {
		wr->wr.rdma.remote_addr = s->raddr;
		// Soft-iWARP's library takes the key to invalidate from rkey, so it is stored
		// there, too.
		wr->wr.rdma.rkey = s->op == GD_OP_SEND_INVALIDATE ? s->imm : s->rkey;
	}
	if (s->op == GD_OP_BIND)
		build_bind(wr, s);
	if (gd_too_long(q->dev, s)) { // a segment in no region makes it fail in its turn
		static struct gv_sge nowhere = {.addr = 1, .length = 1, .lkey = 0};
		wr->opcode = GV_WR_SEND;
		wr->sg_list = &nowhere;
		wr->num_sge = 1;
	} else if (s->nsge == 0 && q->dev->cfg.siw) {
		// Soft-iWARP's requests need a segment, and its reads a length above 0.
		memset(wr->sg_list, 0, sizeof *wr->sg_list);
		wr->num_sge = 1;
		if (s->op == GD_OP_READ)
			wr->opcode = GV_WR_RDMA_WRITE;
	} else if (s->len > 0 && s->len <= q->inline_max && copyable(q->dev, s->op) &&
		   gd_inlinable(q->dev, q->qp->pd, wr->sg_list, wr->num_sge)) {
		wr->send_flags |= GV_SEND_INLINE;
		s->copied = 1;
	}
}

// late takes requests for a queue pair that is dead; the next polls flush them.
static void late(struct gd_qp *q, struct gd_queue *k, uint32_t n)
{
	atomic_fetch_add(&k->posted, n);
	pthread_mutex_lock(&q->dev->mu);
	gd_list(q);
	pthread_mutex_unlock(&q->dev->mu);
	gd_attend(q->dev);
}

static int hand_over_sends(struct gd_qp *q, uint32_t n, uint32_t *taken)
{
	struct gd_device *d = q->dev;
	uint32_t pos = atomic_load(&q->sq.posted), last = q->last_signaled;
	struct gv_send_wr *bad = NULL;
	atomic_store(&q->inlining, 1);
	for (uint32_t i = 0; i < n; i++) {
		struct gv_send_wr *wr = &q->send_wrs[i];
		build(q, pos + i, wr);
		wr->next = i + 1 < n ? wr + 1 : NULL;
		if (wr->send_flags & GV_SEND_SIGNALED)
			last = pos + i + 1;
	}
	// A poll may take completions of these requests before post_send returns.
	atomic_store(&q->sq.posted, pos + n);
	int err = q->qp->context->ops.post_send(q->qp, q->send_wrs, &bad);
	atomic_store(&q->inlining, 0);
	atomic_fetch_add(&d->doorbells, 1);
	*taken = n;
	if (err && bad) {
		*taken = bad - q->send_wrs;
		atomic_store(&q->sq.posted, pos + *taken);
		for (last = q->last_signaled, n = 0; n < *taken; n++)
			if (q->send_wrs[n].send_flags & GV_SEND_SIGNALED)
				last = pos + n + 1;
	} else if (err) { // all are in the queue, but the doorbell failed
		gd_notice(q, GD_NOTICE_FAILED);
		err = 0;
	}
	q->last_signaled = last;
	return err < 0 ? -err : err;
}

// gd_post_send posts the next n slots of the send queue, at most q->batch.
int gd_post_send(struct gd_qp *q, uint32_t n, uint32_t *taken)
{
	int err = 0;
	pthread_mutex_lock(&q->mu);
	if (q->dead) {
		late(q, &q->sq, n);
		*taken = n;
	} else {
		err = hand_over_sends(q, n, taken);
	}
	pthread_mutex_unlock(&q->mu);
	atomic_fetch_add(&q->dev->posts, 1);
	atomic_fetch_add(&q->dev->posted, *taken);
	return err;
}

static int hand_over_recvs(struct gd_qp *q, uint32_t n, uint32_t *taken)
{
	uint32_t pos = atomic_load(&q->rq.posted);
	struct gv_recv_wr *bad = NULL;
	for (uint32_t i = 0; i < n; i++) {
		struct gd_slot *s = slot_at(&q->rq, pos + i);
		struct gv_recv_wr *wr = &q->recv_wrs[i];
		wr->wr_id = gd_wr_id(q, 1, pos + i);
		wr->sg_list = sges_at(&q->rq, pos + i);
		wr->num_sge = s->nsge;
		wr->next = i + 1 < n ? wr + 1 : NULL;
		if (s->nsge == 0 && q->dev->cfg.siw) {
			memset(wr->sg_list, 0, sizeof *wr->sg_list);
			wr->num_sge = 1;
		}
	}
	atomic_store(&q->rq.posted, pos + n);
	int err = q->qp->context->ops.post_recv(q->qp, q->recv_wrs, &bad);
	*taken = n;
	if (err) {
		*taken = bad ? bad - q->recv_wrs : 0;
		atomic_store(&q->rq.posted, pos + *taken);
	}
	return err < 0 ? -err : err;
}

// gd_post_recv posts the next n slots of the receive queue, at most q->batch.
int gd_post_recv(struct gd_qp *q, uint32_t n, uint32_t *taken)
{
	int err = 0;
	pthread_mutex_lock(&q->mu);
	if (q->dead) {
		late(q, &q->rq, n);
		*taken = n;
	} else {
		err = hand_over_recvs(q, n, taken);
	}
	pthread_mutex_unlock(&q->mu);
	atomic_fetch_add(&q->dev->posts, 1);
	atomic_fetch_add(&q->dev->posted, *taken);
	return err;
}

// gd_repost_recvs gives the device the receives again that have not completed, with q->mu
// held. A receive that the device does not take again is flushed at the end.
void gd_repost_recvs(struct gd_qp *q)
{
	struct gd_queue *k = &q->rq;
	uint32_t end = atomic_load(&k->posted), left, taken = 1;
	pthread_mutex_lock(&q->dev->mu);
	atomic_store(&k->posted, k->reaped);
	pthread_mutex_unlock(&q->dev->mu);
	while (taken && (left = end - atomic_load(&k->posted)) > 0)
		hand_over_recvs(q, left < q->batch ? left : q->batch, &taken);
	atomic_store(&k->posted, end);
}

static struct gd_slot *own_slot(struct gd_qp *q, uint8_t kind)
{
	struct gd_slot *s = slot_at(&q->sq, atomic_load(&q->sq.posted));
	memset(s, 0, sizeof *s);
	s->kind = kind;
	s->op = GD_OP_WRITE;
	s->flags = GD_WR_SIGNALED;
	return s;
}

// gd_post_farewell posts the write of the farewell, one byte, into the peer's place.
int gd_post_farewell(struct gd_qp *q, uint64_t from, uint32_t lkey, uint64_t to, uint32_t rkey, uint32_t *posted)
{
	uint32_t taken = 0;
	pthread_mutex_lock(&q->mu);
	int err = q->dead ? ECANCELED : 0;
	if (err == 0) {
		struct gd_slot *s = own_slot(q, GD_FAREWELL);
		struct gv_sge *e = sges_at(&q->sq, atomic_load(&q->sq.posted));
		*e = (struct gv_sge){.addr = from, .length = 1, .lkey = lkey};
		s->nsge = 1;
		s->len = 1;
		s->raddr = to;
		s->rkey = rkey;
		err = hand_over_sends(q, 1, &taken);
	}
	*posted = atomic_load(&q->sq.posted);
	pthread_mutex_unlock(&q->mu);
	return err;
}

// gd_fetch_farewell posts the read of the peer's farewell into this side's place. It uses
// no slot of the ring, since only the queue pair's owner may fill those.
int gd_fetch_farewell(struct gd_qp *q, uint64_t into, uint32_t lkey, uint64_t from, uint32_t rkey)
{
	struct gv_sge e = {.addr = into, .length = 1, .lkey = lkey};
	struct gv_send_wr *bad = NULL, wr = {
		.wr_id = gd_wr_id(q, 0, 0) | GD_ID_FETCHED,
		.sg_list = &e,
		.num_sge = 1,
		.opcode = GV_WR_RDMA_READ,
		.send_flags = GV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = from, .rkey = rkey},
	};
	pthread_mutex_lock(&q->mu);
	int err = q->dead ? ECANCELED : q->qp->context->ops.post_send(q->qp, &wr, &bad);
	pthread_mutex_unlock(&q->mu);
	return err < 0 ? -err : err;
}

// post_nothing posts a request of no bytes, with q->mu held. The key is no key.
static int post_nothing(struct gd_qp *q, int opcode, int flags)
{
	struct gv_sge none = {0};
	struct gv_send_wr *bad = NULL, wr = {
		.wr_id = gd_wr_id(q, 0, 0) | GD_ID_NUDGE,
		.sg_list = &none,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = flags,
		.wr.rdma = {.rkey = 1},
	};
	return q->dead ? ECANCELED : q->qp->context->ops.post_send(q->qp, &wr, &bad);
}

// gd_nudge posts a write of no bytes, or a read of none, which the peer answers. Either
// completes without waking a poll. It uses no slot of the ring, as gd_fetch_farewell, and
// the places in the device's queue that soft-iWARP leaves free: those of the marker and of
// gd_drain's request.
void gd_nudge(struct gd_qp *q, bool read)
{
	pthread_mutex_lock(&q->mu);
	post_nothing(q, read ? GV_WR_RDMA_READ : GV_WR_RDMA_WRITE, 0); // a full queue has more to send anyway
	pthread_mutex_unlock(&q->mu);
}

// gd_probe posts a write of no bytes, unless the last one is outstanding. Its failure ends
// the connection as that of any request. It uses the place in the device's queue that
// gd_fetch_farewell uses on other connections.
void gd_probe(struct gd_qp *q)
{
	struct gd_device *d = q->dev;
	pthread_mutex_lock(&q->mu);
	pthread_mutex_lock(&d->mu);
	int outstanding = q->probing;
	q->probing = 1;
	pthread_mutex_unlock(&d->mu);
	if (!outstanding && post_nothing(q, GV_WR_RDMA_WRITE, GV_SEND_SIGNALED) != 0) {
		pthread_mutex_lock(&d->mu);
		q->probing = 0;
		pthread_mutex_unlock(&d->mu);
	}
	pthread_mutex_unlock(&q->mu);
}

// gd_drain asks for a notice when all sends posted so far have completed. When the last
// of them is not signaled, it posts a signaled request of its own.
int gd_drain(struct gd_qp *q, uint32_t *posted)
{
	struct gd_device *d = q->dev;
	uint32_t taken = 0;
	pthread_mutex_lock(&q->mu);
	int err = q->dead ? ECANCELED : 0;
	uint32_t end = atomic_load(&q->sq.posted);
	if (err == 0 && !d->cfg.signal_all && end != q->last_signaled) {
		own_slot(q, GD_DRAIN);
		err = hand_over_sends(q, 1, &taken);
		end++;
	}
	int dry = 0;
	if (err == 0) {
		pthread_mutex_lock(&d->mu);
		q->draining = 1;
		q->drain_at = end;
		dry = (int32_t)(q->sq.done - end) >= 0;
		q->dry = dry ? 2 : 0;
		pthread_mutex_unlock(&d->mu);
	}
	if (dry)
		gd_notice(q, GD_NOTICE_DRAINED);
	*posted = atomic_load(&q->sq.posted);
	pthread_mutex_unlock(&q->mu);
	return err;
}

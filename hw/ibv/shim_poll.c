//go:build linux && cgo

#include <arpa/inet.h>
#include <string.h>

#include "internal.h"

// note leaves a notice about a queue pair for the event goroutine, under dev->mu. The
// caller wakes that goroutine after it has released dev->mu.
static void note(struct gd_qp *q, uint32_t bits)
{
	struct gd_device *d = q->dev;
	if (q->notices == 0) {
		q->next_notice = d->notice_list;
		d->notice_list = q;
	}
	q->notices |= bits;
	d->noticed = 1;
}

// gd_notice is note for a caller that does not hold dev->mu, and wakes the goroutine.
void gd_notice(struct gd_qp *q, uint32_t bits)
{
	pthread_mutex_lock(&q->dev->mu);
	note(q, bits);
	pthread_mutex_unlock(&q->dev->mu);
	gd_signal(q->dev->notice_fd);
}

// gd_next_notice takes a queue pair off the notice list. It stores the queue pair's handle and the
// number of the device's queue pair, and returns its notices: 0 when the list is empty.
uint32_t gd_next_notice(struct gd_device *d, uint64_t *handle, uint32_t *qp_num)
{
	pthread_mutex_lock(&d->mu);
	struct gd_qp *q = d->notice_list;
	uint32_t bits = 0;
	if (q) {
		d->notice_list = q->next_notice;
		*handle = q->handle;
		*qp_num = q->qp->qp_num;
		bits = q->notices;
		q->notices = 0;
	}
	pthread_mutex_unlock(&d->mu);
	return bits;
}

// status_of translates a completion's status to an hw.Status. Where the device's status
// is ambiguous, it checks the request's length and segments.
static uint8_t status_of(struct gd_qp *q, int recv, struct gd_slot *s, struct gv_sge *sges, int status)
{
	struct gd_device *d = q->dev;
	uint8_t st = d->cfg.status_of[recv][status & 63];
	if (status == GV_WC_SUCCESS || status == GV_WC_WR_FLUSH_ERR)
		return st;
	if (!recv && gd_too_long(d, s))
		return GD_LOCAL_LENGTH;
	if (status != GV_WC_LOC_QP_OP_ERR && status != GV_WC_GENERAL_ERR)
		return st;
	int writes = recv || s->op == GD_OP_READ || s->op == GD_OP_FETCH_ADD || s->op == GD_OP_COMPARE_SWAP;
	if (!gd_sges_valid(d, q->qp->pd, sges, s->nsge, writes ? GV_ACCESS_LOCAL_WRITE : 0))
		return GD_LOCAL_PROTECTION;
	return st;
}

// end_of_silence notes a completion that is no success: the first status other than
// flushed, and a notice for the event goroutine. When a request is flushed before the
// cause is known, hold makes completions wait until the owner was told of the
// connection's end.
static void end_of_silence(struct gd_qp *q, const struct gv_wc *wc, int recv)
{
	int status = wc->status;
	if (status == GV_WC_SUCCESS)
		return;
	if (status != GV_WC_WR_FLUSH_ERR && !q->failed_status) {
		q->failed_status = status;
		q->failed_vendor = wc->vendor_err;
		q->failed_recv = recv;
	}
	if (q->dead)
		return;
	if (status == GV_WC_WR_FLUSH_ERR)
		q->hold = 1;
	note(q, status == GV_WC_WR_FLUSH_ERR ? GD_NOTICE_FLUSHED : GD_NOTICE_FAILED);
}

// say_failed notes the hw.Status of the request that failed first, and returns status.
static uint8_t say_failed(struct gd_qp *q, uint8_t status)
{
	if (q->failed_status && !q->failed_word && status != GD_SUCCESS && status != GD_FLUSHED)
		q->failed_word = status;
	return status;
}

static void look_if_dry(struct gd_qp *q, uint8_t status)
{
	if (status != GD_SUCCESS) {
		q->draining = 0;
	} else if (q->draining && !q->dry && (int32_t)(q->sq.done - q->drain_at) >= 0) {
		q->dry = 1;
		q->dry_seq = q->dev->seq;
		q->dev->unfinished = 1;
		gd_list(q);
	}
}

// hand_on_send hands on the completion of the send at done, unless it succeeded without
// being signaled. It returns how many completions it wrote to out. It turns a success
// behind a failure into a flush, since a device that has failed a request may report
// later ones wrongly.
static int hand_on_send(struct gd_qp *q, struct gd_slot *s, uint8_t status, struct gd_wc *out)
{
	struct gd_queue *k = &q->sq;
	if (status == GD_FLUSHED && k->blamed && k->failed < GD_BY_ITSELF && gd_names(k, k->done, k->blame))
		status = GD_LOCAL_PROTECTION;
	k->reaped = ++k->done;
	k->recorded -= s->done;
	s->done = 0;
	if (status == GD_SUCCESS && k->failed)
		status = GD_FLUSHED;
	else if (status != GD_SUCCESS && k->failed < GD_BY_ITSELF)
		k->failed = status == GD_FLUSHED ? GD_WAS_FLUSHED : GD_BY_ITSELF;
	look_if_dry(q, status);
	if (s->kind != GD_USER) {
		if (s->kind == GD_FAREWELL && status == GD_SUCCESS)
			note(q, GD_NOTICE_FAREWELL);
		return 0;
	}
	if (status == GD_SUCCESS && !(s->flags & GD_WR_SIGNALED))
		return 0;
	*out = (struct gd_wc){
		.id = s->id, .len = s->len, .cq = k->tag, .op = s->op == GD_OP_SEND_INVALIDATE ? GD_OP_SEND : s->op,
		.status = status,
	};
	return 1;
}

static void record(struct gd_qp *q, struct gd_slot *s, uint8_t status)
{
	q->sq.recorded += !s->done;
	s->wc_status = status;
	s->done = 1;
	gd_list(q);
}

// pass concludes, from the completion of a send, that all sends before end are done. A
// send without a completion was not signaled and succeeded, or was signaled and a
// completion queue that overran lost its completion; the latter counts as flushed.
static void pass(struct gd_qp *q, uint32_t end)
{
	struct gd_queue *k = &q->sq;
	for (uint32_t pos = k->done; pos != end; pos++) {
		struct gd_slot *s = slot_at(k, pos);
		if (!s->done && s->kind == GD_USER && s->flags & GD_WR_SIGNALED)
			record(q, s, GD_FLUSHED);
	}
}

// pass_marker concludes, from the marker's completion, that all sends before hw_end are
// done. Sends behind hw_end never reached the device.
static void pass_marker(struct gd_qp *q)
{
	struct gd_queue *k = &q->sq;
	if (!q->dead || !k->marked || (int32_t)(k->hw_end - k->done) <= 0)
		return;
	pass(q, k->hw_end);
	if (!k->recorded)
		k->reaped = k->done = k->hw_end;
}

// reap_send accounts for one completion of a send queue and for the sends before it. It
// returns how many completions it wrote to out: at most one.
static int reap_send(struct gd_qp *q, uint32_t low, const struct gv_wc *wc, struct gd_wc *out)
{
	struct gd_queue *k = &q->sq;
	uint32_t ahead = (low - k->done) & GD_POSITION, posted = atomic_load(&k->posted) - k->done;
	if ((wc->wr_id & GD_ID_NUDGE) == GD_ID_NUDGE) {
		if (q->probing) // otherwise it was a nudge, and was flushed
			end_of_silence(q, wc, 0);
		q->probing = 0;
		q->answered |= wc->status == GV_WC_SUCCESS;
		return 0;
	}
	end_of_silence(q, wc, 0);
	if ((wc->wr_id & GD_ID_FETCHED) == GD_ID_FETCHED) {
		note(q, GD_NOTICE_FETCHED);
		return 0;
	}
	if (wc->wr_id & GD_ID_MARKER) {
		k->marked = 1;
		pass_marker(q);
		return 0;
	}
	if (ahead >= posted)
		return 0; // flush has completed it already
	uint32_t pos = k->done + ahead;
	struct gd_slot *s = slot_at(k, pos);
	uint8_t status = say_failed(q, status_of(q, 0, s, sges_at(k, pos), wc->status));
	if (!q->dev->cfg.signal_all)
		pass(q, pos);
	if (q->hold || (q->dev->cfg.signal_all ? ahead : k->recorded)) {
		// It waits until the owner was told of the connection, or until an earlier send
		// completes: soft-iWARP completes sends behind a read before the read.
		record(q, s, status);
		return 0;
	}
	k->done = pos;
	return hand_on_send(q, s, status, out);
}

// fill_recv stores a receive's completion in its slot. No completion of verbs says
// whether it was solicited. Since a goroutine may be waiting for a solicited one,
// fill_recv marks all of them.
static void fill_recv(struct gd_qp *q, struct gd_slot *s, struct gv_sge *sges, const struct gv_wc *wc)
{
	q->heard = 1;
	s->wc_status = say_failed(q, status_of(q, 1, s, sges, wc->status));
	s->wc_len = wc->byte_len;
	s->wc_op = wc->opcode == GV_WC_RECV_RDMA_WITH_IMM ? GD_OP_RECV_IMM : GD_OP_RECV;
	s->wc_flags = GD_WC_SOLICITED;
	s->wc_imm = 0;
	if (wc->wc_flags & GV_WC_WITH_IMM) {
		s->wc_flags |= GD_WC_IMM;
		s->wc_imm = ntohl(wc->imm_data);
	} else if (wc->wc_flags & GV_WC_WITH_INV) {
		s->wc_op = GD_OP_RECV_INVALIDATE;
		s->wc_flags |= GD_WC_INVALIDATED;
		s->wc_imm = wc->imm_data;
	}
}

static void lose_recv(struct gd_slot *s)
{
	s->wc_status = GD_FLUSHED;
	s->wc_op = GD_OP_RECV;
	s->wc_flags = 0;
	s->wc_len = s->wc_imm = 0;
}

static void hand_on_recv(struct gd_qp *q, const struct gd_slot *s, struct gd_wc *out)
{
	*out = (struct gd_wc){
		.id = s->id, .len = s->wc_len, .imm = s->wc_imm, .status = s->wc_status, .op = s->wc_op,
		.flags = s->wc_flags, .cq = q->rq.tag, .qp = q->srq ? q->number : 0,
	};
}

static int reap_recv(struct gd_qp *q, uint32_t low, const struct gv_wc *wc, struct gd_wc *out)
{
	struct gd_queue *k = &q->rq;
	uint32_t ahead = (low - k->reaped) & GD_POSITION;
	end_of_silence(q, wc, 1);
	if (ahead >= atomic_load(&k->posted) - k->reaped)
		return 0; // flush has completed it already
	uint32_t pos = k->reaped + ahead;
	struct gd_slot *s = slot_at(k, pos);
	fill_recv(q, s, sges_at(k, pos), wc);
	int behind = pos != k->done;
	for (; k->reaped != pos; k->reaped++) // a completion queue that overran lost it
		lose_recv(slot_at(k, k->reaped));
	k->reaped++;
	if (q->hold || behind) {
		gd_list(q);
		return 0;
	}
	k->done = pos + 1;
	hand_on_recv(q, s, out);
	return 1;
}

static int reap_shared(struct gd_device *d, const struct gv_wc *wc, struct gd_wc *out)
{
	struct gd_srq *srq = d->srqs[wc->wr_id >> 32 & 0x7fffffff];
	struct gd_qp **row = d->numbers[wc->qp_num >> 12 & 0xfff];
	struct gd_qp *q = row ? row[wc->qp_num & 0xfff] : NULL;
	uint32_t i = (uint32_t)wc->wr_id;
	if (srq == NULL || i >= srq->nslots)
		return 0;
	if (q == NULL || q->srq != srq || q->rq.ended) { // the last: gd_force or gd_last_wqe ended it before the device did
		gd_give_back(srq, i);
		return 0;
	}
	struct gd_slot *s = &srq->slots[i];
	end_of_silence(q, wc, 1);
	fill_recv(q, s, &srq->sges[(size_t)i * srq->segs], wc);
	if (q->hold || q->srq_head != GD_NO_SLOT) {
		s->next = GD_NO_SLOT;
		if (q->srq_head == GD_NO_SLOT)
			q->srq_head = i;
		else
			srq->slots[q->srq_tail].next = i;
		q->srq_tail = i;
		gd_list(q);
		return 0;
	}
	hand_on_recv(q, s, out);
	gd_give_back(srq, i);
	return 1;
}

static int reap(struct gd_device *d, const struct gv_wc *wc, struct gd_wc *out)
{
	if (wc->wr_id & GD_ID_SHARED)
		return reap_shared(d, wc, out);
	uint32_t index = wc->wr_id >> 32 & (GD_MOST_QPS - 1);
	struct gd_qp **chunk = d->qps[index / GD_QP_CHUNK];
	struct gd_qp *q = chunk ? chunk[index % GD_QP_CHUNK] : NULL;
	if (q == NULL || q->generation != (wc->wr_id >> 50 & GD_GENERATION))
		return 0;
	uint32_t low = wc->wr_id & GD_POSITION;
	return wc->wr_id & GD_ID_RECV ? reap_recv(q, low, wc, out) : reap_send(q, low, wc, out);
}

// take polls one completion queue until it is empty or has given share completions.
static int take(struct gd_device *d, struct gd_cq *cq, struct gd_wc *out, int share)
{
	struct gv_wc raw[GD_RAW];
	int n = 0;
	while (n < share) {
		int ask = share - n < GD_RAW ? share - n : GD_RAW;
		int got = cq->cq->context->ops.poll_cq(cq->cq, ask, raw);
		for (int i = 0; i < got; i++)
			n += reap(d, &raw[i], &out[n]);
		if (got < ask) {
			cq->empty_at = d->seq;
			break;
		}
	}
	return n;
}

// take_all polls the completion queues in turn; each gives its share before any gives
// more.
static int take_all(struct gd_device *d, struct gd_wc *out, int max)
{
	int n = 0, more = 1;
	for (int round = 0; more && n < max; round++) {
		int share = (max - n) / (int)(d->ncqs ? d->ncqs : 1);
		more = 0;
		for (uint32_t i = 0; i < d->ncqs && n < max; i++) {
			struct gd_cq *cq = d->cqs[(d->turn + i) % d->ncqs];
			if (cq->empty_at == d->seq)
				continue;
			int part = share > 0 ? share : 1;
			n += take(d, cq, out + n, part < max - n ? part : max - n);
			more |= cq->empty_at != d->seq;
		}
	}
	if (d->ncqs)
		d->turn = (d->turn + 1) % d->ncqs;
	return n;
}

// gd_poll moves up to max completions of all queues into d->out, and returns how many.
int gd_poll(struct gd_device *d, int max)
{
	int n = 0;
	if (max > (int)d->out_cap)
		max = d->out_cap;
	atomic_store(&d->attention, 0);
	pthread_mutex_lock(&d->mu);
	d->seq++;
	if (d->pending && d->seq & 1) // or busy completion queues would starve the pending list
		n = gd_settle(d, d->out, max);
	n += take_all(d, d->out + n, max - n);
	if (d->pending && n < max)
		n += gd_settle(d, d->out + n, max - n);
	int noticed = d->noticed, more = n == max || d->unfinished;
	d->noticed = d->unfinished = 0;
	pthread_mutex_unlock(&d->mu);
	if (more) // there may be work for which no event will come
		gd_attend(d);
	if (noticed)
		gd_signal(d->notice_fd);
	atomic_fetch_add(&d->polls, 1);
	atomic_fetch_add(&d->polled, n);
	return n;
}

// note_dry gives the notice that the sends before gd_drain are done, one poll after the
// poll that handed on the last of them.
static void note_dry(struct gd_qp *q)
{
	if (q->dry == 1 && q->dry_seq != q->dev->seq && !q->dead) {
		q->dry = 2;
		note(q, GD_NOTICE_DRAINED);
	}
}

// next_known moves done to the next send whose completion may be handed on, and returns
// its slot. Where not every send is signaled, it passes over those without a completion.
static struct gd_slot *next_known(struct gd_qp *q)
{
	struct gd_queue *k = &q->sq;
	uint32_t posted = atomic_load(&k->posted);
	for (uint32_t pos = k->done; pos != posted; pos++) {
		struct gd_slot *s = slot_at(k, pos);
		if (s->done) {
			k->done = pos;
			return s;
		}
		if (q->dev->cfg.signal_all)
			break;
	}
	return NULL;
}

// hand_on_held hands on the completions that waited, unless hold is still set.
static int hand_on_held(struct gd_qp *q, struct gd_wc *out, int max)
{
	struct gd_queue *k = &q->rq;
	int n = 0;
	if (q->hold)
		return 0;
	while (q->sq.recorded && n < max) {
		struct gd_slot *s = next_known(q);
		if (s == NULL)
			break;
		n += hand_on_send(q, s, s->wc_status, &out[n]);
	}
	pass_marker(q);
	for (; k->done != k->reaped && n < max; k->done++)
		hand_on_recv(q, slot_at(k, k->done), &out[n++]);
	while (q->srq_head != GD_NO_SLOT && n < max) {
		uint32_t i = q->srq_head;
		hand_on_recv(q, &q->srq->slots[i], &out[n++]);
		q->srq_head = q->srq->slots[i].next;
		gd_give_back(q->srq, i);
	}
	return n;
}

static int flush_one(struct gd_qp *q, struct gd_queue *k, struct gd_wc *out)
{
	struct gd_slot *s = slot_at(k, k->done);
	if (k == &q->sq)
		return hand_on_send(q, s, s->done ? s->wc_status : GD_FLUSHED, out);
	k->reaped = ++k->done;
	*out = (struct gd_wc){.id = s->id, .status = GD_FLUSHED, .op = s->op, .cq = k->tag};
	return 1;
}

// flush completes the requests that the device won't: those that it was never given,
// and, when quiet says that it has finished flushing, those that it forgot.
static int flush(struct gd_qp *q, struct gd_queue *k, int quiet, struct gd_wc *out, int max)
{
	int n = 0;
	while (n < max && quiet && (int32_t)(k->hw_end - k->done) > 0)
		n += flush_one(q, k, &out[n]);
	if ((int32_t)(k->hw_end - k->done) > 0)
		return n;
	while (n < max && k->done != atomic_load(&k->posted))
		n += flush_one(q, k, &out[n]);
	return n;
}

static int end(struct gd_queue *k, struct gd_wc *out)
{
	k->ended = 1;
	*out = (struct gd_wc){.id = k->end_id, .status = GD_SUCCESS, .op = GD_OP_END, .cq = k->tag};
	return 1;
}

// end_all hands on OpEnd of each queue of a dead queue pair that has no request left.
static int end_all(struct gd_qp *q, int empty, struct gd_wc *out, int max)
{
	int n = 0;
	if (!q->over || atomic_load(&q->telling))
		return 0;
	if (!q->sq.ended && n < max && q->sq.done == atomic_load(&q->sq.posted))
		n += end(&q->sq, &out[n]);
	int shared = !q->srq || (q->srq_head == GD_NO_SLOT && empty && (q->dev->cfg.siw || q->last_wqe || q->forced));
	if (!q->rq.ended && n < max && shared && q->rq.done == atomic_load(&q->rq.posted))
		n += end(&q->rq, &out[n]);
	return n;
}

// settle_one does the work for a queue pair that no completion of the device triggers.
// *again says whether the queue pair stays on the pending list.
static int settle_one(struct gd_device *d, struct gd_qp *q, struct gd_wc *out, int max, int *again)
{
	note_dry(q);
	int n = hand_on_held(q, out, max);
	int empty = q->sq.cq->empty_at == d->seq && q->rq.cq->empty_at == d->seq && q->killed_seq < d->seq;
	if (q->dead && q->rq.done == q->rq.reaped && q->srq_head == GD_NO_SLOT) {
		// Soft-iWARP has flushed when gd_kill's modify_qp returns, and forgets requests
		// that were posted after it had flushed.
		int quiet = q->forced || (d->cfg.siw && empty);
		n += flush(q, &q->sq, quiet, out + n, max - n);
		n += flush(q, &q->rq, quiet, out + n, max - n);
		n += end_all(q, empty, out + n, max - n);
	}
	int held = q->sq.recorded || q->rq.done != q->rq.reaped || q->srq_head != GD_NO_SLOT;
	*again = q->dead ? !(q->sq.ended && q->rq.ended) : held || q->dry == 1;
	return n;
}

// gd_settle calls settle_one for the queue pairs on the pending list.
int gd_settle(struct gd_device *d, struct gd_wc *out, int max)
{
	int n = 0;
	for (struct gd_qp **p = &d->pending; *p && n < max;) {
		struct gd_qp *q = *p;
		int again = 0;
		n += settle_one(d, q, out + n, max - n, &again);
		if (again) {
			p = &q->next_pending;
		} else {
			*p = q->next_pending;
			q->listed = 0;
		}
	}
	return n;
}

//go:build linux && cgo

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static uint32_t outstanding(const struct gd_srq *s) { return s->nslots - s->nfree - s->nstaged; }

// gd_give_back frees the slot of a shared receive whose completion was handed on or
// dropped, under dev->mu.
void gd_give_back(struct gd_srq *s, uint32_t slot)
{
	pthread_mutex_lock(&s->mu);
	s->slots[slot].next = s->free_head;
	s->free_head = slot;
	s->nfree++;
	if (outstanding(s) < s->limit)
		s->dev->noticed = 1;
	pthread_mutex_unlock(&s->mu);
}

// gd_outstanding is how many posted receives no poll has handed on yet.
int gd_outstanding(struct gd_srq *s)
{
	pthread_mutex_lock(&s->mu);
	int n = outstanding(s);
	pthread_mutex_unlock(&s->mu);
	return n;
}

// gd_arm_srq sets the low watermark. Soft-RoCE raises no event for a queue that is below
// the watermark already; so when the C half's count is, gd_arm_srq arms nothing on the
// device, and the caller asks gd_is_low.
int gd_arm_srq(struct gd_srq *s, uint32_t limit)
{
	pthread_mutex_lock(&s->mu);
	s->limit = limit;
	struct gv_srq_attr a = {.srq_limit = outstanding(s) < limit ? 0 : limit};
	pthread_mutex_unlock(&s->mu);
	int err = gd_lib.modify_srq(s->srq, &a, GV_SRQ_LIMIT);
	return err < 0 ? -err : err;
}

// gd_is_low reports whether gd_outstanding is below the low watermark.
bool gd_is_low(struct gd_srq *s)
{
	pthread_mutex_lock(&s->mu);
	bool low = outstanding(s) < s->limit;
	pthread_mutex_unlock(&s->mu);
	return low;
}

// gd_disarm_srq clears the low watermark, and reports whether one was set.
bool gd_disarm_srq(struct gd_srq *s)
{
	pthread_mutex_lock(&s->mu);
	bool armed = s->limit != 0;
	s->limit = 0;
	pthread_mutex_unlock(&s->mu);
	return armed;
}

// gd_stage_srq reserves free slots until n are staged for the next post or none is free,
// and returns how many are staged.
int gd_stage_srq(struct gd_srq *s, uint32_t n)
{
	pthread_mutex_lock(&s->mu);
	while (s->nstaged < n && s->free_head != GD_NO_SLOT) {
		uint32_t i = s->free_head;
		s->free_head = s->slots[i].next;
		s->nfree--;
		s->staged[s->nstaged++] = i;
	}
	pthread_mutex_unlock(&s->mu);
	return s->nstaged;
}

static void free_srq(struct gd_srq *s)
{
	free(s->slots);
	free(s->sges);
	free(s->wrs);
	free(s->staged);
	pthread_mutex_destroy(&s->mu);
	free(s);
}

static int admit(struct gd_srq *s)
{
	struct gd_device *d = s->dev;
	int err = 0;
	pthread_mutex_lock(&d->mu);
	for (s->index = 0; s->index < d->nsrqs && d->srqs[s->index]; s->index++)
		;
	if (s->index == d->nsrqs) {
		struct gd_srq **more = realloc(d->srqs, (d->nsrqs + 1) * sizeof *more);
		if (more) {
			d->srqs = more;
			d->nsrqs++;
		} else {
			err = ENOMEM;
		}
	}
	if (err == 0)
		d->srqs[s->index] = s;
	pthread_mutex_unlock(&d->mu);
	return err;
}

// gd_new_srq makes a shared receive queue for room receives.
struct gd_srq *gd_new_srq(struct gd_device *d, struct gv_pd *pd, uint32_t room, uint32_t segs, uint64_t handle)
{
	struct gd_srq *s = calloc(1, sizeof *s);
	if (s == NULL)
		return NULL;
	struct gv_srq_init_attr a = {
		.srq_context = (void *)(uintptr_t)handle,
		.attr = {.max_wr = room, .max_sge = segs},
	};
	s->dev = d;
	s->handle = handle;
	s->nslots = room;
	s->segs = segs ? segs : 1;
	s->batch = GD_BATCH;
	pthread_mutex_init(&s->mu, NULL);
	s->slots = calloc(room, sizeof *s->slots);
	s->sges = calloc((size_t)room * s->segs, sizeof *s->sges);
	s->wrs = calloc(s->batch, sizeof *s->wrs);
	s->staged = calloc(s->batch, sizeof *s->staged);
	int err = s->slots && s->sges && s->wrs && s->staged ? 0 : ENOMEM;
	if (err == 0 && (s->srq = gd_lib.create_srq(pd, &a)) == NULL)
		err = errno ? errno : ENOMEM;
	if (err == 0 && (err = admit(s)) != 0)
		gd_lib.destroy_srq(s->srq);
	if (err) {
		free_srq(s);
		errno = err;
		return NULL;
	}
	s->free_head = GD_NO_SLOT;
	s->nfree = room;
	for (uint32_t i = room; i-- > 0;) {
		s->slots[i].next = s->free_head;
		s->free_head = i;
	}
	return s;
}

// gd_post_srq posts the first n staged slots. The Go half's posts lock serializes calls.
int gd_post_srq(struct gd_srq *s, uint32_t n, uint32_t *taken)
{
	struct gv_recv_wr *bad = NULL;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t slot = s->staged[i];
		struct gv_recv_wr *wr = &s->wrs[i];
		wr->wr_id = GD_ID_SHARED | (uint64_t)s->index << 32 | slot;
		wr->sg_list = &s->sges[(size_t)slot * s->segs];
		wr->num_sge = s->slots[slot].nsge;
		wr->next = i + 1 < n ? wr + 1 : NULL;
		if (wr->num_sge == 0 && s->dev->cfg.siw) {
			memset(wr->sg_list, 0, sizeof *wr->sg_list);
			wr->num_sge = 1;
		}
	}
	int err = s->srq->context->ops.post_srq_recv(s->srq, s->wrs, &bad);
	*taken = err == 0 ? n : bad ? (uint32_t)(bad - s->wrs) : 0;
	pthread_mutex_lock(&s->mu);
	s->nstaged -= *taken;
	memmove(s->staged, s->staged + *taken, s->nstaged * sizeof *s->staged);
	pthread_mutex_unlock(&s->mu);
	atomic_fetch_add(&s->dev->posts, 1);
	atomic_fetch_add(&s->dev->posted, *taken);
	return err < 0 ? -err : err;
}

int gd_close_srq(struct gd_srq *s)
{
	struct gd_device *d = s->dev;
	pthread_mutex_lock(&d->mu);
	d->srqs[s->index] = NULL;
	pthread_mutex_unlock(&d->mu);
	int err = gd_lib.destroy_srq(s->srq);
	free_srq(s);
	return err;
}

struct gd_srq_ring gd_srq_ring_of(struct gd_srq *s)
{
	return (struct gd_srq_ring){.slots = s->slots, .sges = s->sges, .staged = s->staged, .segs = s->segs};
}

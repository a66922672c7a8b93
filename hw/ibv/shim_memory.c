//go:build linux && cgo

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "internal.h"

static uint32_t bucket(uint32_t lkey) { return (lkey ^ lkey >> 8 ^ lkey >> 18) % GD_REGION_BUCKETS; }

static struct gd_recent *recent(struct gd_device *d, uint32_t lkey)
{
	return &d->recent[(lkey ^ lkey >> 8) % GD_RECENT];
}

// remember publishes a region to gd_inlinable; with g NULL it clears the entry. Writers
// hold regions_mu. A reader knows by seq, which is odd during a write and changes with
// each, that a write interfered.
static void remember(struct gd_recent *r, const struct gd_region *g)
{
	atomic_fetch_add(&r->seq, 1);
	atomic_store(&r->lkey, g ? g->lkey : 0);
	atomic_store(&r->base, g ? g->base : 0);
	atomic_store(&r->len, g ? g->len : 0);
	atomic_store(&r->pd, g ? g->pd : NULL);
	atomic_fetch_add(&r->seq, 1);
}

static int inside(uint64_t base, uint64_t len, uint64_t addr, uint64_t n)
{
	return addr >= base && addr - base <= len && n <= len - (addr - base);
}

struct gv_mr *gd_register(struct gd_device *d, struct gv_pd *pd, uintptr_t addr, uint64_t len, uint32_t access)
{
	struct gd_region *g = calloc(1, sizeof *g);
	if (g == NULL)
		return NULL;
	// The first function refuses what a device may ignore, the second leaves it out for a
	// device that does not know it.
	int relaxed = access & GV_ACCESS_RELAXED_ORDERING && gd_lib.reg_mr_iova2;
	access &= ~GV_ACCESS_RELAXED_ORDERING;
	struct gv_mr *mr = relaxed ?
		gd_lib.reg_mr_iova2(pd, (void *)addr, len, addr, access | GV_ACCESS_RELAXED_ORDERING) :
		gd_lib.reg_mr(pd, (void *)addr, len, access);
	if (mr == NULL) {
		int err = errno;
		free(g);
		errno = err;
		return NULL;
	}
	g->lkey = mr->lkey;
	g->access = access;
	g->base = addr;
	g->len = len;
	g->pd = pd;
	pthread_mutex_lock(&d->regions_mu);
	g->next = d->regions[bucket(g->lkey)];
	d->regions[bucket(g->lkey)] = g;
	remember(recent(d, g->lkey), g);
	pthread_mutex_unlock(&d->regions_mu);
	return mr;
}

// gd_register_at registers memory under addresses that begin at iova. It does not
// publish the region to gd_inlinable, so no send from it goes inline.
struct gv_mr *gd_register_at(struct gv_pd *pd, uintptr_t addr, uint64_t len, uint64_t iova, uint32_t access)
{
	return gd_lib.reg_mr_iova(pd, (void *)addr, len, iova, access);
}

static void forget(struct gd_device *d, uint32_t lkey)
{
	struct gd_region *gone = NULL;
	pthread_mutex_lock(&d->regions_mu);
	for (struct gd_region **p = &d->regions[bucket(lkey)]; *p; p = &(*p)->next) {
		if ((*p)->lkey == lkey) {
			gone = *p;
			*p = gone->next;
			break;
		}
	}
	if (atomic_load(&recent(d, lkey)->lkey) == lkey)
		remember(recent(d, lkey), NULL);
	pthread_mutex_unlock(&d->regions_mu);
	free(gone);
}

// settle_inlining waits until no post can still be copying from a region that forget has
// just removed. It waits for one post of each queue pair at most.
static void settle_inlining(struct gd_device *d)
{
	pthread_mutex_lock(&d->mu);
	for (uint32_t i = 0; i < d->nqps; i++) {
		struct gd_qp *q = d->qps[i / GD_QP_CHUNK][i % GD_QP_CHUNK];
		while (q && atomic_load(&q->inlining))
			sched_yield();
	}
	pthread_mutex_unlock(&d->mu);
}

int gd_deregister(struct gd_device *d, struct gv_mr *mr)
{
	forget(d, mr->lkey);
	settle_inlining(d);
	return gd_lib.dereg_mr(mr);
}

// gd_names reports whether the send at pos names a region that the device may still
// read or write for it. An inline send's memory was read when it was posted.
int gd_names(struct gd_queue *k, uint32_t pos, uint32_t lkey)
{
	const struct gd_slot *s = slot_at(k, pos);
	const struct gv_sge *e = sges_at(k, pos);
	for (int i = 0; i < s->nsge && !s->copied; i++)
		if (e[i].lkey == lkey)
			return 1;
	return 0;
}

// gd_blame reports whether an outstanding send names a region that is gone, and notes
// the region. The caller then kills the queue pair, and the first such send that is
// flushed completes with a protection error. gd_blame can't pick that send itself,
// since some of them may still succeed.
bool gd_blame(struct gd_qp *q, uint32_t lkey)
{
	struct gd_queue *k = &q->sq;
	pthread_mutex_lock(&q->mu); // keeps posts out
	pthread_mutex_lock(&q->dev->mu);
	uint32_t posted = atomic_load(&k->posted);
	for (uint32_t pos = k->done; !q->dead && !k->blamed && pos != posted; pos++) {
		if (!slot_at(k, pos)->done && gd_names(k, pos, lkey)) {
			k->blamed = 1;
			k->blame = lkey;
		}
	}
	bool blamed = k->blamed;
	pthread_mutex_unlock(&q->dev->mu);
	pthread_mutex_unlock(&q->mu);
	return blamed;
}

// gd_settle_copies waits until every processor has left the non-preemptible section of
// the kernel in which it may be copying a piece of a message into memory.
void gd_settle_copies(void)
{
	enum { GLOBAL = 1 };
	syscall(__NR_membarrier, GLOBAL, 0, 0);
}

// gd_inlinable reports whether all segments certainly lie in registered memory of the
// zone, so that the processor may copy from them. To answer no is always safe: then the
// device checks the segments.
int gd_inlinable(struct gd_device *d, struct gv_pd *pd, const struct gv_sge *s, int n)
{
	for (int i = 0; i < n; i++) {
		struct gd_recent *r = recent(d, s[i].lkey);
		uint32_t seq = atomic_load(&r->seq);
		int good = atomic_load(&r->lkey) == s[i].lkey && atomic_load(&r->pd) == pd &&
			   inside(atomic_load(&r->base), atomic_load(&r->len), s[i].addr, s[i].length);
		if (!good || seq & 1 || atomic_load(&r->seq) != seq)
			return 0;
	}
	return 1;
}

// gd_sges_valid reports whether all segments lie in registered regions of the zone that
// grant the access. status_of asks it when the device's status is ambiguous.
int gd_sges_valid(struct gd_device *d, struct gv_pd *pd, const struct gv_sge *s, int n, uint32_t access)
{
	int good = 1;
	pthread_mutex_lock(&d->regions_mu);
	for (int i = 0; i < n && good; i++) {
		struct gd_region *g = d->regions[bucket(s[i].lkey)];
		while (g && g->lkey != s[i].lkey)
			g = g->next;
		good = g && g->pd == pd && (g->access & access) == access &&
		       inside(g->base, g->len, s[i].addr, s[i].length);
	}
	pthread_mutex_unlock(&d->regions_mu);
	return good;
}

// gd_new_window makes a window of one queue pair (own, type 2), or of all queue pairs of
// the zone (type 1). A posted request with a given key binds either type.
struct gv_mw *gd_new_window(struct gv_pd *pd, bool own)
{
	if (pd->context->ops.alloc_mw == NULL) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return pd->context->ops.alloc_mw(pd, own ? GV_MW_TYPE_2 : GV_MW_TYPE_1);
}

int gd_close_window(struct gv_mw *mw) { return mw->context->ops.dealloc_mw(mw); }

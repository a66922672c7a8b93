//go:build linux && cgo

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "internal.h"

// gd_signal adds one to an eventfd. The write fails only when the counter is full, and
// a full counter wakes the reader as well.
void gd_signal(int fd)
{
	uint64_t one = 1;
	ssize_t n = write(fd, &one, sizeof one);
	(void)n;
}

static int nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? errno : 0;
}

static int open_parts(struct gd_device *d, struct gv_device *dev)
{
	d->ctx = gd_lib.open_device(dev);
	if (d->ctx == NULL)
		return errno ? errno : ENODEV;
	d->channel = gd_lib.create_comp_channel(d->ctx);
	if (d->channel == NULL)
		return errno ? errno : ENOMEM;
	d->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	d->notice_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (d->wake_fd < 0 || d->notice_fd < 0)
		return errno;
	int err = nonblocking(d->channel->fd);
	if (err == 0)
		err = nonblocking(d->ctx->async_fd);
	if (err == 0)
		err = gd_cm_open(d);
	if (err == 0)
		err = nonblocking(d->cm->fd);
	return err;
}

struct gd_device *gd_open(struct gv_device *dev)
{
	struct gd_device *d = calloc(1, sizeof *d);
	if (d == NULL)
		return NULL;
	d->wake_fd = d->notice_fd = -1;
	pthread_mutex_init(&d->mu, NULL);
	pthread_mutex_init(&d->regions_mu, NULL);
	d->out_cap = 256;
	d->out = calloc(d->out_cap, sizeof *d->out);
	d->generations = calloc(GD_MOST_QPS, sizeof *d->generations);
	int err = d->out && d->generations ? open_parts(d, dev) : ENOMEM;
	if (err == 0)
		return d;
	gd_close(d);
	errno = err;
	return NULL;
}

// gd_close frees a device that has no objects left, or that gd_open opened in part.
void gd_close(struct gd_device *d)
{
	if (d->cm)
		gd_lib.destroy_event_channel(d->cm);
	if (d->ballast)
		gd_lib.destroy_cq(d->ballast);
	if (d->channel)
		gd_lib.destroy_comp_channel(d->channel);
	if (d->ctx)
		gd_lib.close_device(d->ctx);
	if (d->wake_fd >= 0)
		close(d->wake_fd);
	if (d->notice_fd >= 0)
		close(d->notice_fd);
	for (unsigned i = 0; i < GD_MOST_QPS / GD_QP_CHUNK; i++)
		free(d->qps[i]);
	for (unsigned i = 0; i < sizeof d->numbers / sizeof d->numbers[0]; i++)
		free(d->numbers[i]);
	free(d->generations);
	free(d->free_qps);
	free(d->cqs);
	free(d->srqs);
	free(d->out);
	pthread_mutex_destroy(&d->mu);
	pthread_mutex_destroy(&d->regions_mu);
	free(d);
}

// BALLAST is the size of a completion queue that gd_configure makes before all others on
// soft-iWARP. The kernel may tell the process to map a queue at offset 0x90000, which
// soft-iWARP's library takes for "no offset", so that it refuses the queue. The ballast
// queue covers that offset.
enum { BALLAST = 0x92000 / 32 };

int gd_configure(struct gd_device *d, const struct gd_device_config *cfg)
{
	d->cfg = *cfg;
	if (!cfg->siw)
		return 0;
	d->ballast = gd_lib.create_cq(d->ctx, BALLAST, NULL, NULL, 0);
	return d->ballast ? 0 : errno ? errno : ENOMEM;
}

struct gd_fds gd_watch_fds(struct gd_device *d)
{
	return (struct gd_fds){
		.cm = d->cm->fd, .async = d->ctx->async_fd, .notice = d->notice_fd,
		.channel = d->channel->fd, .wake = d->wake_fd,
	};
}

struct gd_wc *gd_out(struct gd_device *d) { return d->out; }
int gd_transport(struct gd_device *d) { return d->ctx->device->transport_type; }
void gd_wake(struct gd_device *d) { gd_signal(d->wake_fd); }
void gd_wake_events(struct gd_device *d) { gd_signal(d->notice_fd); }

void gd_quiet_events(struct gd_device *d)
{
	uint64_t count;
	ssize_t n = read(d->notice_fd, &count, sizeof count);
	(void)n;
}

struct gd_counters gd_count(struct gd_device *d)
{
	return (struct gd_counters){
		.posts = atomic_load(&d->posts), .posted = atomic_load(&d->posted), .doorbells = atomic_load(&d->doorbells),
		.polls = atomic_load(&d->polls), .polled = atomic_load(&d->polled),
	};
}

int gd_query(struct gd_device *d, struct gv_device_attr *attr, struct gv_port_attr *port, int n)
{
	memset(attr, 0, sizeof *attr);
	memset(port, 0, sizeof *port);
	int err = gd_lib.query_device(d->ctx, attr);
	return err ? err : gd_lib.query_port(d->ctx, n, port);
}

// gd_get_async takes the next asynchronous event, copies and acknowledges it. It returns
// EAGAIN when there is none.
int gd_get_async(struct gd_device *d, struct gd_async *a)
{
	struct gv_async_event e;
	if (gd_lib.get_async_event(d->ctx, &e) != 0)
		return errno ? errno : EAGAIN;
	a->type = e.event_type;
	a->handle = 0;
	a->qp_num = 0;
	switch (e.event_type) {
	case GV_EVENT_CQ_ERR:
		a->handle = ((struct gd_cq *)e.element.cq->cq_context)->handle;
		break;
	case GV_EVENT_QP_FATAL:
	case GV_EVENT_QP_REQ_ERR:
	case GV_EVENT_QP_ACCESS_ERR:
	case GV_EVENT_COMM_EST:
	case GV_EVENT_SQ_DRAINED:
	case GV_EVENT_PATH_MIG:
	case GV_EVENT_PATH_MIG_ERR:
	case GV_EVENT_QP_LAST_WQE_REACHED:
		a->handle = (uintptr_t)e.element.qp->qp_context;
		a->qp_num = e.element.qp->qp_num;
		break;
	case GV_EVENT_SRQ_ERR:
	case GV_EVENT_SRQ_LIMIT_REACHED:
		a->handle = (uintptr_t)e.element.srq->srq_context;
		break;
	}
	gd_lib.ack_async_event(&e);
	return 0;
}

struct gv_pd *gd_alloc_pd(struct gd_device *d) { return gd_lib.alloc_pd(d->ctx); }
int gd_free_pd(struct gv_pd *pd) { return gd_lib.dealloc_pd(pd); }

struct gd_cq *gd_new_cq(struct gd_device *d, int depth, uint64_t handle, uint32_t tag, bool solicited)
{
	struct gd_cq *cq = calloc(1, sizeof *cq);
	if (cq == NULL)
		return NULL;
	cq->dev = d;
	cq->handle = handle;
	cq->tag = tag;
	cq->solicited = solicited;
	cq->cq = gd_lib.create_cq(d->ctx, depth, cq, d->channel, 0);
	if (cq->cq == NULL) {
		free(cq);
		return NULL;
	}
	pthread_mutex_lock(&d->mu);
	if (d->ncqs == d->cap_cqs) {
		uint32_t cap = d->cap_cqs ? 2 * d->cap_cqs : 16;
		struct gd_cq **more = realloc(d->cqs, cap * sizeof *more);
		if (more == NULL) {
			pthread_mutex_unlock(&d->mu);
			gd_lib.destroy_cq(cq->cq);
			free(cq);
			errno = ENOMEM;
			return NULL;
		}
		d->cqs = more;
		d->cap_cqs = cap;
	}
	d->cqs[d->ncqs++] = cq;
	if (d->armed)
		gd_arm_cq(cq);
	pthread_mutex_unlock(&d->mu);
	return cq;
}

// gd_close_cq destroys a completion queue. It waits until the poller has acknowledged
// the events that it has taken off the channel.
int gd_close_cq(struct gd_cq *cq)
{
	struct gd_device *d = cq->dev;
	pthread_mutex_lock(&d->mu);
	for (uint32_t i = 0; i < d->ncqs; i++) {
		if (d->cqs[i] == cq) {
			d->cqs[i] = d->cqs[--d->ncqs];
			break;
		}
	}
	pthread_mutex_unlock(&d->mu);
	int err = gd_lib.destroy_cq(cq->cq);
	free(cq);
	return err;
}

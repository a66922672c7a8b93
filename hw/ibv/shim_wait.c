//go:build linux && cgo

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "internal.h"

// drain_channel takes all events off the completion channel and acknowledges
// them: what is left behind would never wake anybody again.
static int drain_channel(struct gd_device *d)
{
	struct gv_cq *cq;
	void *ctx;
	int n = 0;
	while (gd_lib.get_cq_event(d->channel, &cq, &ctx) == 0) {
		pthread_mutex_lock(&d->mu);
		((struct gd_cq *)ctx)->armed = 0;
		pthread_mutex_unlock(&d->mu);
		gd_lib.ack_cq_events(cq, 1);
		n++;
	}
	return n;
}

// gd_attend ends gd_wait, now or when it begins, unless a poll comes between.
void gd_attend(struct gd_device *d)
{
	atomic_store(&d->attention, 1);
	if (atomic_load(&d->sleeping))
		gd_signal(d->wake_fd);
}

// gd_arm_cq asks for an event at a queue's next completion, under dev->mu. Soft-iWARP
// has no event for solicited ones alone: better woken too often than never.
int gd_arm_cq(struct gd_cq *cq)
{
	int solicited = cq->solicited && !cq->dev->cfg.siw;
	int err = cq->armed ? 0 : cq->cq->context->ops.req_notify_cq(cq->cq, solicited);
	cq->armed = err == 0;
	return err < 0 ? -err : err;
}

// gd_arm asks for a wake-up at the next completion of any queue. A queue that is
// armed still is left alone.
int gd_arm(struct gd_device *d)
{
	int err = 0;
	drain_channel(d);
	pthread_mutex_lock(&d->mu);
	d->armed = 1; // queues that come later are armed when they come
	for (uint32_t i = 0; i < d->ncqs && err == 0; i++)
		err = gd_arm_cq(d->cqs[i]);
	pthread_mutex_unlock(&d->mu);
	return err;
}

// wait_once waits for the completion channel and for gd_signal(wake_fd).
static int wait_once(struct gd_device *d)
{
	struct pollfd fds[2] = {
		{.fd = d->channel->fd, .events = POLLIN},
		{.fd = d->wake_fd, .events = POLLIN},
	};
	if (poll(fds, 2, -1) < 0)
		return errno == EINTR ? EAGAIN : errno;
	int events = drain_channel(d);
	uint64_t count;
	int woken = fds[1].revents && read(d->wake_fd, &count, sizeof count) == sizeof count;
	if (events || woken)
		return 0;
	return fds[0].revents & (POLLERR | POLLHUP | POLLNVAL) ? EIO : EAGAIN;
}

// gd_wait blocks until an armed queue got a completion, or until it is woken.
int gd_wait(struct gd_device *d)
{
	int err = 0;
	atomic_store(&d->sleeping, 1);
	if (!atomic_load(&d->attention)) {
		do
			err = wait_once(d);
		while (err == EAGAIN);
	}
	atomic_store(&d->sleeping, 0);
	pthread_mutex_lock(&d->mu);
	d->armed = 0;
	pthread_mutex_unlock(&d->mu);
	return err;
}

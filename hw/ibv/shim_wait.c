//go:build linux && cgo

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "internal.h"

// drain_channel takes all events off the completion channel and acknowledges them. It
// marks their queues as not armed, so that gd_arm arms them again. An event that stayed
// behind would leave its queue marked as armed although the device has disarmed it, and
// later completions would raise no event.
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

// gd_attend makes the current wait return, or else the next one, unless a gd_poll
// begins before it.
void gd_attend(struct gd_device *d)
{
	atomic_store(&d->attention, 1);
	if (atomic_load(&d->sleeping))
		gd_signal(d->wake_fd);
}

// gd_arm_cq asks for an event at a queue's next completion, or its next solicited one,
// under dev->mu. Soft-iWARP has no event for solicited completions alone, so there it
// asks for all: the poller wakes too often rather than never.
int gd_arm_cq(struct gd_cq *cq)
{
	int solicited = cq->solicited && !cq->dev->cfg.siw;
	int err = cq->armed ? 0 : cq->cq->context->ops.req_notify_cq(cq->cq, solicited);
	cq->armed = err == 0;
	return err < 0 ? -err : err;
}

// gd_arm arms every completion queue that is not armed already.
int gd_arm(struct gd_device *d)
{
	int err = 0;
	drain_channel(d);
	pthread_mutex_lock(&d->mu);
	d->armed = 1; // gd_new_cq arms a queue that is made later
	for (uint32_t i = 0; i < d->ncqs && err == 0; i++)
		err = gd_arm_cq(d->cqs[i]);
	pthread_mutex_unlock(&d->mu);
	return err;
}

// wait_once waits for an event of the completion channel or a signal to wake_fd, for some
// milliseconds at most, or without end if they are less than 0. It returns EAGAIN when poll
// returned without either.
static int wait_once(struct gd_device *d, int ms)
{
	struct pollfd fds[2] = {
		{.fd = d->channel->fd, .events = POLLIN},
		{.fd = d->wake_fd, .events = POLLIN},
	};
	if (poll(fds, 2, ms) < 0)
		return errno == EINTR ? EAGAIN : errno;
	int events = drain_channel(d);
	uint64_t count;
	int woken = fds[1].revents && read(d->wake_fd, &count, sizeof count) == sizeof count;
	if (events || woken)
		return 0;
	return fds[0].revents & (POLLERR | POLLHUP | POLLNVAL) ? EIO : EAGAIN;
}

// gd_begin_wait says that the poller waits from now on, and returns whether there is
// something to wait for. gd_end_wait follows in any case.
bool gd_begin_wait(struct gd_device *d)
{
	atomic_store(&d->sleeping, 1);
	return !atomic_load(&d->attention);
}

// gd_try_wait returns EAGAIN if the wait goes on.
int gd_try_wait(struct gd_device *d) { return wait_once(d, 0); }

void gd_end_wait(struct gd_device *d)
{
	atomic_store(&d->sleeping, 0);
	pthread_mutex_lock(&d->mu);
	d->armed = 0;
	pthread_mutex_unlock(&d->mu);
}

// gd_wait blocks until an armed queue has an event, or until gd_wake or gd_attend wakes
// the poller.
int gd_wait(struct gd_device *d)
{
	int err = 0;
	if (gd_begin_wait(d)) {
		do
			err = wait_once(d, -1);
		while (err == EAGAIN);
	}
	gd_end_wait(d);
	return err;
}

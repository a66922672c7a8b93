//go:build linux && cgo

#include <errno.h>
#include <string.h>

#include "internal.h"

static int to_init(struct gd_qp *q, const struct gd_path *p, uint32_t access)
{
	struct gv_qp_attr a = {
		.qp_state = GV_QPS_INIT,
		.pkey_index = p->pkey_index,
		.port_num = p->port,
		.qp_access_flags = access,
	};
	return gd_lib.modify_qp(q->qp, &a, GV_QP_STATE | GV_QP_PKEY_INDEX | GV_QP_PORT | GV_QP_ACCESS_FLAGS);
}

static int to_receive(struct gd_qp *q, const struct gd_path *p, const struct gd_up *up)
{
	struct gv_qp_attr a = {
		.qp_state = GV_QPS_RTR,
		.path_mtu = p->mtu,
		.dest_qp_num = p->qpn,
		.rq_psn = p->rq_psn,
		.max_dest_rd_atomic = up->reads_in,
		.min_rnr_timer = up->min_rnr,
		.ah_attr = {
			.dlid = p->dlid,
			.sl = p->sl,
			.is_global = p->global,
			.port_num = p->port,
		},
	};
	if (p->global) {
		memcpy(a.ah_attr.grh.dgid, p->dgid, sizeof p->dgid);
		a.ah_attr.grh.flow_label = p->flow_label;
		a.ah_attr.grh.sgid_index = p->sgid_index;
		a.ah_attr.grh.hop_limit = p->hop_limit;
		a.ah_attr.grh.traffic_class = p->traffic_class;
	}
	return gd_lib.modify_qp(q->qp, &a, GV_QP_STATE | GV_QP_AV | GV_QP_PATH_MTU | GV_QP_DEST_QPN | GV_QP_RQ_PSN |
		GV_QP_MAX_DEST_RD_ATOMIC | GV_QP_MIN_RNR_TIMER);
}

static int to_send(struct gd_qp *q, const struct gd_path *p, const struct gd_up *up)
{
	struct gv_qp_attr a = {
		.qp_state = GV_QPS_RTS,
		.sq_psn = p->sq_psn,
		.timeout = up->timeout,
		.retry_cnt = up->retry,
		.rnr_retry = up->rnr_retry,
		.max_rd_atomic = up->reads_out ? up->reads_out : up->least_out, // see step_up
	};
	return gd_lib.modify_qp(q->qp, &a, GV_QP_STATE | GV_QP_SQ_PSN | GV_QP_TIMEOUT | GV_QP_RETRY_CNT |
		GV_QP_RNR_RETRY | GV_QP_MAX_QP_RD_ATOMIC);
}

// gd_pair brings a queue pair into service towards a peer whose values the program knows,
// without the connection manager. It returns ECANCELED when the queue pair is dead already.
// After another error the queue pair is in INIT, as before, and has its receives.
int gd_pair(struct gd_qp *q, const struct gd_path *p, const struct gd_up *up, uint32_t access)
{
	pthread_mutex_lock(&q->mu);
	int err = q->dead ? ECANCELED : to_init(q, p, access);
	if (err == 0)
		err = to_receive(q, p, up);
	if (err == 0 && (err = to_send(q, p, up)) != 0) {
		struct gv_qp_attr a = {.qp_state = GV_QPS_RESET};
		gd_lib.modify_qp(q->qp, &a, GV_QP_STATE); // the way to INIT; it loses the receives
		to_init(q, p, access);
		gd_repost_recvs(q);
	}
	pthread_mutex_unlock(&q->mu);
	return err;
}

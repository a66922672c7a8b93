// Compares what gd_pair tells the library with what ibv_rc_pingpong tells it, as the
// distribution's headers lay it out: on InfiniBand, where a LID alone leads to the peer or a GID
// beside it, and on Ethernet, where there is no LID. It needs no device.
//   cc -I.. -o pair_check pair_check.c ../shim_pair.c && ./pair_check
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

struct gd_lib gd_lib;

void gd_repost_recvs(struct gd_qp *q) { (void)q; }

// The attributes and masks that the library was given.
static struct {
	struct ibv_qp_attr attr;
	int mask;
} given[8];
static int calls, refused; // the number of the call that fails, from 1 on; 0: none

static int take(struct gv_qp *qp, struct gv_qp_attr *a, int mask)
{
	(void)qp;
	memcpy(&given[calls].attr, a, sizeof *a);
	given[calls].mask = mask;
	return ++calls == refused ? EINVAL : 0;
}

static int failed;

static void expect(const char *name, int call, const struct ibv_qp_attr *want, int mask)
{
	if (given[call].mask != mask || memcmp(&given[call].attr, want, sizeof *want) != 0) {
		fprintf(stderr, "%s: call %d has mask %#x and attributes other than ibv_rc_pingpong's with mask %#x\n",
			name, call, given[call].mask, mask);
		failed = 1;
	}
}

enum { INIT = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS };

static const struct gd_up up = {.reads_in = 4, .reads_out = 3, .min_rnr = 12, .rnr_retry = 6, .timeout = 14, .retry = 5};

static void check(const char *name, struct gd_path p)
{
	struct gd_qp q = {.mu = PTHREAD_MUTEX_INITIALIZER};
	const struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT, .pkey_index = 3, .port_num = 2, .qp_access_flags = IBV_ACCESS_REMOTE_READ,
	};
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_2048, .dest_qp_num = 0x123456, .rq_psn = 0xabcdef,
		.max_dest_rd_atomic = 4, .min_rnr_timer = 12,
		.ah_attr = {.is_global = 0, .dlid = p.dlid, .sl = 7, .src_path_bits = 0, .port_num = 2},
	};
	const struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 5, .rnr_retry = 6, .sq_psn = 0x654321, .max_rd_atomic = 3,
	};
	if (p.global) {
		rtr.ah_attr.is_global = 1;
		memcpy(rtr.ah_attr.grh.dgid.raw, p.dgid, sizeof p.dgid);
		rtr.ah_attr.grh.sgid_index = 9;
		rtr.ah_attr.grh.hop_limit = 64;
		rtr.ah_attr.grh.traffic_class = 106;
		rtr.ah_attr.grh.flow_label = 0xfedcb;
	}
	calls = 0;
	int err = gd_pair(&q, &p, &up, IBV_ACCESS_REMOTE_READ);
	if (err != (refused ? EINVAL : 0) || calls != (refused ? 5 : 3)) {
		fprintf(stderr, "%s: %d calls, error %d\n", name, calls, err);
		failed = 1;
	}
	expect(name, 0, &init, INIT);
	expect(name, 1, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	expect(name, 2, &rts, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		IBV_QP_MAX_QP_RD_ATOMIC);
	if (refused) {
		const struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
		expect(name, 3, &reset, IBV_QP_STATE);
		expect(name, 4, &init, INIT);
	}
}

int main(void)
{
	struct gd_path p = {
		.port = 2, .sgid_index = 9, .hop_limit = 64, .traffic_class = 106, .sl = 7, .mtu = IBV_MTU_2048,
		.dgid = {0xfe, 0x80, [15] = 1}, .dlid = 0xbeef, .pkey_index = 3, .flow_label = 0xfedcb,
		.qpn = 0x123456, .rq_psn = 0xabcdef, .sq_psn = 0x654321,
	};
	gd_lib.modify_qp = take;
	check("a LID", p);
	p.global = 1;
	check("a LID and a GID", p);
	p.dlid = 0;
	check("a GID", p);
	refused = 3;
	check("a device that refuses the last step", p);
	return failed;
}

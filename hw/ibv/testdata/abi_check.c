// Compares abi.h with the distribution's headers: every structure's size, every
// member's offset and every constant. The check passes when this file compiles.
//   cc -fsyntax-only -I.. abi_check.c
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "abi.h"
#include "abi_cm.h"

#define SIZE(a, b) _Static_assert(sizeof(struct a) == sizeof(struct b), "size of " #a)
#define AT(a, f, b, g)                                                                     \
	_Static_assert(offsetof(struct a, f) == offsetof(struct b, g), #a "." #f);         \
	_Static_assert(sizeof(((struct a *)0)->f) == sizeof(((struct b *)0)->g), #a "." #f " size")
#define SAME(a, b, f) AT(a, f, b, f)
#define IS(a, b) _Static_assert((int)(a) == (int)(b), #a)

SIZE(gv_device, ibv_device);
SAME(gv_device, ibv_device, node_type);
SAME(gv_device, ibv_device, transport_type);
SAME(gv_device, ibv_device, name);
SAME(gv_device, ibv_device, ibdev_path);

SIZE(gv_ops, ibv_context_ops);
SAME(gv_ops, ibv_context_ops, alloc_mw);
SAME(gv_ops, ibv_context_ops, dealloc_mw);
SAME(gv_ops, ibv_context_ops, poll_cq);
SAME(gv_ops, ibv_context_ops, req_notify_cq);
SAME(gv_ops, ibv_context_ops, post_srq_recv);
SAME(gv_ops, ibv_context_ops, post_send);
SAME(gv_ops, ibv_context_ops, post_recv);

SIZE(gv_context, ibv_context);
SAME(gv_context, ibv_context, device);
SAME(gv_context, ibv_context, ops);
SAME(gv_context, ibv_context, async_fd);

SIZE(gv_device_attr, ibv_device_attr);
SAME(gv_device_attr, ibv_device_attr, fw_ver);
SAME(gv_device_attr, ibv_device_attr, max_mr_size);
SAME(gv_device_attr, ibv_device_attr, vendor_id);
SAME(gv_device_attr, ibv_device_attr, hw_ver);
SAME(gv_device_attr, ibv_device_attr, max_qp);
SAME(gv_device_attr, ibv_device_attr, max_qp_wr);
SAME(gv_device_attr, ibv_device_attr, device_cap_flags);
SAME(gv_device_attr, ibv_device_attr, max_sge);
SAME(gv_device_attr, ibv_device_attr, max_sge_rd);
SAME(gv_device_attr, ibv_device_attr, max_cq);
SAME(gv_device_attr, ibv_device_attr, max_cqe);
SAME(gv_device_attr, ibv_device_attr, max_mr);
SAME(gv_device_attr, ibv_device_attr, max_pd);
SAME(gv_device_attr, ibv_device_attr, max_qp_rd_atom);
SAME(gv_device_attr, ibv_device_attr, max_qp_init_rd_atom);
SAME(gv_device_attr, ibv_device_attr, atomic_cap);
SAME(gv_device_attr, ibv_device_attr, max_mw);
SAME(gv_device_attr, ibv_device_attr, max_srq);
SAME(gv_device_attr, ibv_device_attr, max_srq_wr);
SAME(gv_device_attr, ibv_device_attr, max_srq_sge);
SAME(gv_device_attr, ibv_device_attr, phys_port_cnt);

SAME(gv_port_attr, ibv_port_attr, state);
SAME(gv_port_attr, ibv_port_attr, max_msg_sz);
SAME(gv_port_attr, ibv_port_attr, link_layer);
_Static_assert(sizeof(struct gv_port_attr) >= sizeof(struct ibv_port_attr), "gv_port_attr");

SIZE(gv_pd, ibv_pd);
SIZE(gv_mr, ibv_mr);
SAME(gv_mr, ibv_mr, lkey);
SAME(gv_mr, ibv_mr, rkey);
SIZE(gv_mw, ibv_mw);
SAME(gv_mw, ibv_mw, rkey);
SIZE(gv_mw_bind_info, ibv_mw_bind_info);
SAME(gv_mw_bind_info, ibv_mw_bind_info, mr);
SAME(gv_mw_bind_info, ibv_mw_bind_info, addr);
SAME(gv_mw_bind_info, ibv_mw_bind_info, length);
SAME(gv_mw_bind_info, ibv_mw_bind_info, mw_access_flags);
SIZE(gv_comp_channel, ibv_comp_channel);
SAME(gv_comp_channel, ibv_comp_channel, fd);

SAME(gv_cq, ibv_cq, context);
SAME(gv_cq, ibv_cq, cq_context);
SAME(gv_cq, ibv_cq, cqe);
SAME(gv_srq, ibv_srq, context);
SAME(gv_srq, ibv_srq, srq_context);
SAME(gv_qp, ibv_qp, context);
SAME(gv_qp, ibv_qp, qp_context);
SAME(gv_qp, ibv_qp, qp_num);

SIZE(gv_srq_attr, ibv_srq_attr);
SAME(gv_srq_attr, ibv_srq_attr, max_wr);
SAME(gv_srq_attr, ibv_srq_attr, max_sge);
SAME(gv_srq_attr, ibv_srq_attr, srq_limit);
SIZE(gv_srq_init_attr, ibv_srq_init_attr);
SAME(gv_srq_init_attr, ibv_srq_init_attr, attr);
SIZE(gv_qp_cap, ibv_qp_cap);
SAME(gv_qp_cap, ibv_qp_cap, max_send_wr);
SAME(gv_qp_cap, ibv_qp_cap, max_recv_wr);
SAME(gv_qp_cap, ibv_qp_cap, max_send_sge);
SAME(gv_qp_cap, ibv_qp_cap, max_recv_sge);
SAME(gv_qp_cap, ibv_qp_cap, max_inline_data);
SIZE(gv_qp_init_attr, ibv_qp_init_attr);
SAME(gv_qp_init_attr, ibv_qp_init_attr, qp_context);
SAME(gv_qp_init_attr, ibv_qp_init_attr, send_cq);
SAME(gv_qp_init_attr, ibv_qp_init_attr, recv_cq);
SAME(gv_qp_init_attr, ibv_qp_init_attr, srq);
SAME(gv_qp_init_attr, ibv_qp_init_attr, cap);
SAME(gv_qp_init_attr, ibv_qp_init_attr, qp_type);
SAME(gv_qp_init_attr, ibv_qp_init_attr, sq_sig_all);
SIZE(gv_ah_attr, ibv_ah_attr);
SIZE(gv_qp_attr, ibv_qp_attr);
SAME(gv_qp_attr, ibv_qp_attr, qp_state);
SAME(gv_qp_attr, ibv_qp_attr, qp_access_flags);
SAME(gv_qp_attr, ibv_qp_attr, cap);
SAME(gv_qp_attr, ibv_qp_attr, ah_attr);
SAME(gv_qp_attr, ibv_qp_attr, pkey_index);
SAME(gv_qp_attr, ibv_qp_attr, max_rd_atomic);
SAME(gv_qp_attr, ibv_qp_attr, max_dest_rd_atomic);
SAME(gv_qp_attr, ibv_qp_attr, min_rnr_timer);
SAME(gv_qp_attr, ibv_qp_attr, port_num);
SAME(gv_qp_attr, ibv_qp_attr, timeout);
SAME(gv_qp_attr, ibv_qp_attr, retry_cnt);
SAME(gv_qp_attr, ibv_qp_attr, rnr_retry);

SIZE(gv_sge, ibv_sge);
SAME(gv_sge, ibv_sge, addr);
SAME(gv_sge, ibv_sge, length);
SAME(gv_sge, ibv_sge, lkey);
SIZE(gv_send_wr, ibv_send_wr);
SAME(gv_send_wr, ibv_send_wr, wr_id);
SAME(gv_send_wr, ibv_send_wr, next);
SAME(gv_send_wr, ibv_send_wr, sg_list);
SAME(gv_send_wr, ibv_send_wr, num_sge);
SAME(gv_send_wr, ibv_send_wr, opcode);
SAME(gv_send_wr, ibv_send_wr, send_flags);
SAME(gv_send_wr, ibv_send_wr, imm_data);
SAME(gv_send_wr, ibv_send_wr, wr.rdma.remote_addr);
SAME(gv_send_wr, ibv_send_wr, wr.rdma.rkey);
SAME(gv_send_wr, ibv_send_wr, wr.atomic.remote_addr);
SAME(gv_send_wr, ibv_send_wr, wr.atomic.compare_add);
SAME(gv_send_wr, ibv_send_wr, wr.atomic.swap);
SAME(gv_send_wr, ibv_send_wr, wr.atomic.rkey);
SAME(gv_send_wr, ibv_send_wr, bind_mw.mw);
SAME(gv_send_wr, ibv_send_wr, bind_mw.rkey);
SAME(gv_send_wr, ibv_send_wr, bind_mw.bind_info);
SIZE(gv_recv_wr, ibv_recv_wr);
SAME(gv_recv_wr, ibv_recv_wr, next);
SAME(gv_recv_wr, ibv_recv_wr, sg_list);
SAME(gv_recv_wr, ibv_recv_wr, num_sge);
SIZE(gv_wc, ibv_wc);
SAME(gv_wc, ibv_wc, wr_id);
SAME(gv_wc, ibv_wc, status);
SAME(gv_wc, ibv_wc, opcode);
SAME(gv_wc, ibv_wc, byte_len);
SAME(gv_wc, ibv_wc, imm_data);
SAME(gv_wc, ibv_wc, qp_num);
SAME(gv_wc, ibv_wc, wc_flags);
SIZE(gv_async_event, ibv_async_event);
SAME(gv_async_event, ibv_async_event, event_type);

SIZE(gc_event_channel, rdma_event_channel);
SAME(gc_id, rdma_cm_id, verbs);
SAME(gc_id, rdma_cm_id, channel);
SAME(gc_id, rdma_cm_id, context);
SAME(gc_id, rdma_cm_id, qp);
AT(gc_id, route.src_addr, rdma_cm_id, route.addr.src_storage);
AT(gc_id, route.dst_addr, rdma_cm_id, route.addr.dst_storage);
SAME(gc_id, rdma_cm_id, ps);
SAME(gc_id, rdma_cm_id, port_num);
SIZE(gc_conn_param, rdma_conn_param);
SAME(gc_conn_param, rdma_conn_param, private_data);
SAME(gc_conn_param, rdma_conn_param, private_data_len);
SAME(gc_conn_param, rdma_conn_param, responder_resources);
SAME(gc_conn_param, rdma_conn_param, initiator_depth);
SAME(gc_conn_param, rdma_conn_param, flow_control);
SAME(gc_conn_param, rdma_conn_param, retry_count);
SAME(gc_conn_param, rdma_conn_param, rnr_retry_count);
SAME(gc_conn_param, rdma_conn_param, srq);
SAME(gc_conn_param, rdma_conn_param, qp_num);
SIZE(gc_event, rdma_cm_event);
SAME(gc_event, rdma_cm_event, id);
SAME(gc_event, rdma_cm_event, listen_id);
SAME(gc_event, rdma_cm_event, event);
SAME(gc_event, rdma_cm_event, status);
SAME(gc_event, rdma_cm_event, param.conn);

IS(GV_ACCESS_LOCAL_WRITE, IBV_ACCESS_LOCAL_WRITE);
IS(GV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_WRITE);
IS(GV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_READ);
IS(GV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_REMOTE_ATOMIC);
IS(GV_ACCESS_MW_BIND, IBV_ACCESS_MW_BIND);
IS(GV_ACCESS_ZERO_BASED, IBV_ACCESS_ZERO_BASED);
IS(GV_QPT_RC, IBV_QPT_RC);
IS(GV_QPS_INIT, IBV_QPS_INIT);
IS(GV_QPS_RTR, IBV_QPS_RTR);
IS(GV_QPS_RTS, IBV_QPS_RTS);
IS(GV_QPS_ERR, IBV_QPS_ERR);
IS(GV_QP_STATE, IBV_QP_STATE);
IS(GV_QP_ACCESS_FLAGS, IBV_QP_ACCESS_FLAGS);
IS(GV_QP_PKEY_INDEX, IBV_QP_PKEY_INDEX);
IS(GV_QP_PORT, IBV_QP_PORT);
IS(GV_TRANSPORT_IB, IBV_TRANSPORT_IB);
IS(GV_TRANSPORT_IWARP, IBV_TRANSPORT_IWARP);
IS(GV_LINK_LAYER_INFINIBAND, IBV_LINK_LAYER_INFINIBAND);
IS(GV_LINK_LAYER_ETHERNET, IBV_LINK_LAYER_ETHERNET);
IS(GV_SRQ_MAX_WR, IBV_SRQ_MAX_WR);
IS(GV_SRQ_LIMIT, IBV_SRQ_LIMIT);
IS(GV_MW_TYPE_1, IBV_MW_TYPE_1);
IS(GV_MW_TYPE_2, IBV_MW_TYPE_2);
IS(GV_DEVICE_SRQ_RESIZE, IBV_DEVICE_SRQ_RESIZE);
IS(GV_DEVICE_MEM_WINDOW, IBV_DEVICE_MEM_WINDOW);
IS(GV_DEVICE_MW_TYPE_2B, IBV_DEVICE_MEM_WINDOW_TYPE_2B);
IS(GV_DEVICE_MEM_MGT, IBV_DEVICE_MEM_MGT_EXTENSIONS);
IS(GV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE);
IS(GV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM);
IS(GV_WR_SEND, IBV_WR_SEND);
IS(GV_WR_RDMA_READ, IBV_WR_RDMA_READ);
IS(GV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_CMP_AND_SWP);
IS(GV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD);
IS(GV_WR_BIND_MW, IBV_WR_BIND_MW);
IS(GV_WR_SEND_WITH_INV, IBV_WR_SEND_WITH_INV);
IS(GV_SEND_FENCE, IBV_SEND_FENCE);
IS(GV_SEND_SIGNALED, IBV_SEND_SIGNALED);
IS(GV_SEND_SOLICITED, IBV_SEND_SOLICITED);
IS(GV_SEND_INLINE, IBV_SEND_INLINE);
IS(GV_WC_SUCCESS, IBV_WC_SUCCESS);
IS(GV_WC_LOC_LEN_ERR, IBV_WC_LOC_LEN_ERR);
IS(GV_WC_LOC_QP_OP_ERR, IBV_WC_LOC_QP_OP_ERR);
IS(GV_WC_LOC_PROT_ERR, IBV_WC_LOC_PROT_ERR);
IS(GV_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR);
IS(GV_WC_MW_BIND_ERR, IBV_WC_MW_BIND_ERR);
IS(GV_WC_BAD_RESP_ERR, IBV_WC_BAD_RESP_ERR);
IS(GV_WC_LOC_ACCESS_ERR, IBV_WC_LOC_ACCESS_ERR);
IS(GV_WC_REM_INV_REQ_ERR, IBV_WC_REM_INV_REQ_ERR);
IS(GV_WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR);
IS(GV_WC_REM_OP_ERR, IBV_WC_REM_OP_ERR);
IS(GV_WC_RETRY_EXC_ERR, IBV_WC_RETRY_EXC_ERR);
IS(GV_WC_RNR_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR);
IS(GV_WC_REM_ABORT_ERR, IBV_WC_REM_ABORT_ERR);
IS(GV_WC_FATAL_ERR, IBV_WC_FATAL_ERR);
IS(GV_WC_RESP_TIMEOUT_ERR, IBV_WC_RESP_TIMEOUT_ERR);
IS(GV_WC_GENERAL_ERR, IBV_WC_GENERAL_ERR);
IS(GV_WC_RECV, IBV_WC_RECV);
IS(GV_WC_RECV_RDMA_WITH_IMM, IBV_WC_RECV_RDMA_WITH_IMM);
IS(GV_WC_WITH_IMM, IBV_WC_WITH_IMM);
IS(GV_WC_WITH_INV, IBV_WC_WITH_INV);
IS(GV_EVENT_CQ_ERR, IBV_EVENT_CQ_ERR);
IS(GV_EVENT_QP_FATAL, IBV_EVENT_QP_FATAL);
IS(GV_EVENT_QP_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
IS(GV_EVENT_QP_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
IS(GV_EVENT_COMM_EST, IBV_EVENT_COMM_EST);
IS(GV_EVENT_DEVICE_FATAL, IBV_EVENT_DEVICE_FATAL);
IS(GV_EVENT_PORT_ERR, IBV_EVENT_PORT_ERR);
IS(GV_EVENT_SRQ_ERR, IBV_EVENT_SRQ_ERR);
IS(GV_EVENT_SRQ_LIMIT_REACHED, IBV_EVENT_SRQ_LIMIT_REACHED);
IS(GV_EVENT_QP_LAST_WQE_REACHED, IBV_EVENT_QP_LAST_WQE_REACHED);
IS(GV_EVENT_GID_CHANGE, IBV_EVENT_GID_CHANGE);
IS(GC_PS_TCP, RDMA_PS_TCP);
IS(GC_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ADDR_RESOLVED);
IS(GC_EVENT_ADDR_ERROR, RDMA_CM_EVENT_ADDR_ERROR);
IS(GC_EVENT_ROUTE_RESOLVED, RDMA_CM_EVENT_ROUTE_RESOLVED);
IS(GC_EVENT_ROUTE_ERROR, RDMA_CM_EVENT_ROUTE_ERROR);
IS(GC_EVENT_CONNECT_REQUEST, RDMA_CM_EVENT_CONNECT_REQUEST);
IS(GC_EVENT_CONNECT_RESPONSE, RDMA_CM_EVENT_CONNECT_RESPONSE);
IS(GC_EVENT_CONNECT_ERROR, RDMA_CM_EVENT_CONNECT_ERROR);
IS(GC_EVENT_UNREACHABLE, RDMA_CM_EVENT_UNREACHABLE);
IS(GC_EVENT_REJECTED, RDMA_CM_EVENT_REJECTED);
IS(GC_EVENT_ESTABLISHED, RDMA_CM_EVENT_ESTABLISHED);
IS(GC_EVENT_DISCONNECTED, RDMA_CM_EVENT_DISCONNECTED);
IS(GC_EVENT_DEVICE_REMOVAL, RDMA_CM_EVENT_DEVICE_REMOVAL);
IS(GC_EVENT_TIMEWAIT_EXIT, RDMA_CM_EVENT_TIMEWAIT_EXIT);

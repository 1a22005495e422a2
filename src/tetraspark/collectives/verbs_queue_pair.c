/* Queue pairs: made, connected, and the GID that they are connected by. */

/* The index that the port's table has now for the device's GID; -1 while it is not there. */
static int gid_now(const tv_device *device) {
    struct ibv_port_attr port;
    if (!device->mr || ibv_query_port(device->context, (uint8_t)device->port, &port)) return -1;
    if (port.state != IBV_PORT_ACTIVE || !port.gid_tbl_len) return -1;
    struct ibv_gid_entry *table = calloc((size_t)port.gid_tbl_len, sizeof *table);
    if (!table) return -1;
    int found = -1;
    ssize_t count = ibv_query_gid_table(device->context, table, (size_t)port.gid_tbl_len, 0);
    for (ssize_t i = 0; i < count && found < 0; i++)
        if (table[i].port_num == device->port && table[i].gid_type == IBV_GID_TYPE_ROCE_V2 &&
            !memcmp(table[i].gid.raw, device->gid, 16))
            found = (int)table[i].gid_index;
    free(table);
    return found;
}

static uint32_t device_mtu(const tv_device *device) {
    struct ibv_port_attr port;
    return ibv_query_port(device->context, (uint8_t)device->port, &port) ? 256 : 128u << port.active_mtu;
}

static struct ibv_qp *make_qp(tv_context *c, tv_device *device) {
    struct ibv_qp_init_attr wanted = {
        .send_cq = device->cq, .recv_cq = device->cq, .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = c->config.depth, .max_recv_wr = 1, .max_send_sge = 1,
                .max_recv_sge = 1, .max_inline_data = TV_INLINE}};
    struct ibv_qp *qp = device->pd ? ibv_create_qp(device->pd, &wanted) : NULL;
    if (!qp) return NULL;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = (uint8_t)device->port,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    int error = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                             IBV_QP_ACCESS_FLAGS);
    if (!error) return qp;
    ibv_destroy_qp(qp);
    errno = error;
    return NULL;
}

static int connect_qp(tv_context *c, tv_device *device, struct ibv_qp *qp, uint32_t own_number,
                      const tv_remote *remote) {
    enum ibv_mtu mtu = IBV_MTU_256;
    while (mtu < IBV_MTU_4096 && 256u << mtu <= remote->mtu) mtu++;
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR, .path_mtu = mtu, .dest_qp_num = remote->qp,
        .rq_psn = remote->sequence_number, .max_dest_rd_atomic = 1, .min_rnr_timer = 12,
        .ah_attr = {.is_global = 1, .port_num = (uint8_t)device->port,
                    .sl = (uint8_t)c->config.service_level,
                    .grh = {.sgid_index = (uint8_t)device->gid_index, .hop_limit = 64,
                            .traffic_class = (uint8_t)c->config.traffic_class}}};
    memcpy(&attr.ah_attr.grh.dgid, remote->gid, 16);
    int error = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                             IBV_QP_MIN_RNR_TIMER);
    if (error) return refuse(c, "queue pair to RTR", error);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .sq_psn = own_number, .max_rd_atomic = 1,
                                .timeout = (uint8_t)c->config.timeout,
                                .retry_cnt = (uint8_t)c->config.retries, .rnr_retry = 7};
    error = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                         IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
    return error ? refuse(c, "queue pair to RTS", error) : 1;
}

static void prebuild(tv_context *c, uint32_t peer, uint32_t lane, const tv_remote *remote) {
    tv_lane *one = &c->lane[peer][lane];
    uint32_t lkey = c->device[c->config.device[peer][lane]].mr->lkey;
    one->remote = remote->base;
    one->rkey = remote->rkey;
    one->sge[0].lkey = lkey;
    one->sge[1] = (struct ibv_sge){(uintptr_t)&one->flag, sizeof one->flag, lkey};
    for (int i = 0; i < 2; i++) {
        one->wr[i] = (struct ibv_send_wr){.sg_list = &one->sge[i], .num_sge = 1,
                                          .opcode = IBV_WR_RDMA_WRITE, .next = NULL};
        one->wr[i].wr.rdma.rkey = remote->rkey;
    }
    one->wr[0].next = &one->wr[1];
}

/* The lanes' side of failover.c: stops what failed, sends again what was lost, tells the peer, and
 * makes connections anew in a thread of its own, where a slow kernel delays nobody.
 */

static uint64_t mail_of(const tv_context *c, uint32_t rank, uint32_t lane, int going) {
    uint64_t place = ((going ? TV_MAX_WORLD : 0) + rank) * TV_MAX_LANES + lane;
    return c->config.mail + place * TV_MAIL;
}

/* Moves a queue pair to ERR, then to RESET: from the return on, nothing that comes over the lane
 * reaches this region. Whatever refuses that cannot be failed over from. */
static void stop_lane(tv_context *c, uint32_t peer, uint32_t lane) {
    tv_lane *one = &c->lane[peer][lane];
    tv_lane_state *state = &c->state[peer][lane];
    if (!state->broken) {
        break_lane(c, peer, lane, 0, 0, 0, 0);
        state->found_by = TV_TOLD;
    }
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    int error = 0;
    if (one->qp) {
        ibv_modify_qp(one->qp, &attr, IBV_QP_STATE);
        attr.qp_state = IBV_QPS_RESET;
        error = ibv_modify_qp(one->qp, &attr, IBV_QP_STATE);
        if (error && !(error = ibv_destroy_qp(one->qp))) one->qp = NULL;
    }
    if (error) {
        state->stuck = (uint32_t)error;
        return;
    }
    drain(c); /* its last completions: none comes after the reset */
    one->posted = one->done = one->unsignalled = one->beating = one->telling = 0;
    for (uint32_t i = 0; i < c->config.lanes; i++)
        if (c->lane[peer][i].by == lane) c->lane[peer][i].mark = 0;
    one->proof = TV_UNPROVEN;
    one->due_ns = now_ns() + TV_RETRY_NS;
    tf_stopped(&c->pair[peer], lane);
    pthread_cond_signal(&c->broke);
}

static void hear(tv_context *c, uint32_t peer) {
    for (uint32_t lane = 0; lane < c->config.lanes; lane++)
        tf_hear(&c->pair[peer], (const tf_message *)(region(c) + mail_of(c, peer, lane, 0)), region(c),
                c->config.bytes);
}

/* Says what is due over every lane that carries and has delivered the last message. */
static void tell(tv_context *c, uint32_t peer) {
    tf_message message;
    uint32_t free = 0;
    for (uint32_t lane = 0; lane < c->config.lanes; lane++) {
        int works = used(c, peer, lane) && !c->state[peer][lane].broken;
        if (works && !c->lane[peer][lane].telling && room(c, peer, lane, 1, 4)) free |= 1u << lane;
    }
    if (!free || !tf_say(&c->pair[peer], &message)) return;
    for (uint32_t lane = 0; lane < c->config.lanes; lane++) {
        if (!(free & 1u << lane) || c->state[peer][lane].broken) continue;
        uint8_t *going = region(c) + mail_of(c, peer, lane, 1);
        memcpy(going, &message, sizeof message);
        write_to(c, peer, lane, mail_of(c, c->config.rank, lane, 0), going, sizeof message,
                 IBV_SEND_SIGNALED);
        uint32_t posted = c->lane[peer][lane].posted & 0xffffffu;
        c->lane[peer][lane].telling = posted ? posted : 1;
    }
}

/* One round of a pair: what failed, what the peer says, what is owed, what to say. */
static void look_after(tv_context *c, uint32_t peer) {
    tf_pair *pair = &c->pair[peer];
    ts_write write;
    hear(c, peer);
    for (uint32_t lane = 0; lane < c->config.lanes; lane++) {
        tv_lane_state *state = &c->state[peer][lane];
        if (!used(c, peer, lane)) continue;
        if (state->broken && pair->own[lane].phase == TF_UP) tf_fail(pair, lane);
        if (c->lane[peer][lane].proof == TV_DISPROVEN) tf_fail(pair, lane);
        if (!c->lane[peer][lane].mending && !state->stuck && tf_wanted(pair, lane) == TF_STOP)
            stop_lane(c, peer, lane);
    }
    tf_think(pair, region(c), c->config.bytes);
    while (tf_owed(pair, &write) && carry(c, &write, 1)) continue;
    while (tf_arrived(pair, &write)) acknowledge(c, peer, write.lane, write.sequence);
    tell(c, peer);
    for (uint32_t lane = 0; lane < c->config.lanes; lane++) {
        tv_lane_state *state = &c->state[peer][lane];
        state->generation = pair->own[lane].generation;
        state->phase = pair->own[lane].phase;
        state->resent = pair->resent[lane];
        if (!state->settled_ns && state->phase == TF_DOWN && pair->own[lane].settled)
            state->settled_ns = now_ns();
    }
}

/* ---- connections made anew ------------------------------------------------------------------------- */

/* A fresh queue pair, told to the peer. The lock is given up while the kernel works. */
static void offer(tv_context *c, uint32_t peer, uint32_t lane) {
    tv_lane *one = &c->lane[peer][lane];
    tv_device *device = &c->device[c->config.device[peer][lane]];
    struct ibv_qp *spent = one->spent, *made = NULL;
    one->spent = NULL;
    one->mending = 1;
    pthread_mutex_unlock(&c->lock);
    int index = gid_now(device);
    if (index >= 0) made = make_qp(c, device);
    if (made && spent) ibv_destroy_qp(spent);
    pthread_mutex_lock(&c->lock);
    one->mending = 0;
    one->due_ns = now_ns() + TV_RETRY_NS;
    if (!made) {
        one->spent = spent;
        return;
    }
    one->spent = one->qp;
    one->qp = made;
    device->gid_index = (uint32_t)index;
    c->state[peer][lane].qp = made->qp_num;
    tf_offer mine = {.qp = made->qp_num, .sequence_number = (uint32_t)now_ns() >> 4 & 0xffffffu,
                     .mtu = device_mtu(device), .rkey = device->mr->rkey, .base = c->config.base};
    memcpy(mine.gid, device->gid, 16);
    tf_offered(&c->pair[peer], lane, &mine);
}

static void join_again(tv_context *c, uint32_t peer, uint32_t lane) {
    tv_lane *one = &c->lane[peer][lane];
    tf_pair *pair = &c->pair[peer];
    tv_device *device = &c->device[c->config.device[peer][lane]];
    const tf_offer *theirs = tf_peer(pair, lane), *mine = &pair->own[lane].offer;
    tv_remote remote = {theirs->qp, theirs->sequence_number,
                        theirs->mtu < mine->mtu ? theirs->mtu : mine->mtu, theirs->rkey, theirs->base,
                        {0}};
    memcpy(remote.gid, theirs->gid, 16);
    uint32_t number = mine->sequence_number;
    one->mending = 1;
    pthread_mutex_unlock(&c->lock);
    int joined = connect_qp(c, device, one->qp, number, &remote);
    pthread_mutex_lock(&c->lock);
    one->mending = 0;
    if (!joined) {
        tf_fail(pair, lane);
        return;
    }
    prebuild(c, peer, lane, &remote);
    one->proof = TV_UNPROVEN;
    one->due_ns = now_ns() + TV_PROVE_NS;
    tf_joined(pair, lane);
}

/* Sends a write over the lane; once it is acknowledged the lane carries again. */
static void prove(tv_context *c, uint32_t peer, uint32_t lane) {
    tv_lane *one = &c->lane[peer][lane];
    tv_lane_state *state = &c->state[peer][lane];
    if (one->proof == TV_UNPROVEN) {
        one->proof = TV_PROVING;
        write_to(c, peer, lane, c->config.status, region(c), 0, IBV_SEND_SIGNALED);
    } else if (one->proof == TV_PROVEN) {
        one->proof = TV_UNPROVEN;
        state->back_at = progress(c)->doorbell;
        state->rejoined++;
        tf_proven(&c->pair[peer], lane);
        atomic_store((_Atomic uint32_t *)&state->broken, 0);
    } else if (now_ns() >= one->due_ns) {
        one->proof = TV_DISPROVEN;
    }
}

static void mend_lane(tv_context *c, uint32_t peer, uint32_t lane) {
    if (c->state[peer][lane].stuck) return;
    switch (tf_wanted(&c->pair[peer], lane)) {
    case TF_OFFER:
        if (now_ns() >= c->lane[peer][lane].due_ns) offer(c, peer, lane);
        break;
    case TF_JOIN: join_again(c, peer, lane); break;
    case TF_PROVE: prove(c, peer, lane); break;
    default: break;
    }
}

static int stopping(tv_context *c) { return atomic_load((_Atomic uint32_t *)&c->stop) != 0; }

/* Makes lost connections anew; waits while there is none. */
static void *mend(void *context) {
    tv_context *c = context;
    pthread_mutex_lock(&c->lock);
    while (!stopping(c)) {
        int lost = 0;
        for (uint32_t i = 0; i < TV_MAX_WORLD * TV_MAX_LANES && !stopping(c); i++) {
            uint32_t peer = i / TV_MAX_LANES, lane = i % TV_MAX_LANES;
            if (peer >= c->config.world || lane >= c->config.lanes || !used(c, peer, lane)) continue;
            if (!c->state[peer][lane].broken) continue;
            lost = 1;
            mend_lane(c, peer, lane);
        }
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += TV_MEND_NS;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        if (lost)
            pthread_cond_timedwait(&c->broke, &c->lock, &until);
        else if (!stopping(c))
            pthread_cond_wait(&c->broke, &c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* The library of the RDMA lanes: asynchronous events, the thread that serves all lanes, and life.
 *
 * It is one text with failover.c, verbs_lane.c, verbs_queue_pair.c and verbs_failover.c before it.
 */

/* ---- asynchronous events ------------------------------------------------------------------------ */

static uint32_t kind_of(enum ibv_event_type type) {
    switch (type) {
    case IBV_EVENT_PORT_ERR: return TV_PORT_ERROR;
    case IBV_EVENT_PORT_ACTIVE: return TV_PORT_ACTIVE;
    case IBV_EVENT_GID_CHANGE: return TV_GID_CHANGE;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR: return TV_QP_EVENT;
    case IBV_EVENT_DEVICE_FATAL: return TV_DEVICE_FATAL;
    default: return TV_OTHER;
    }
}

/* Breaks the lanes that an event ends: one, or all of the device. */
static void break_of_event(tv_context *c, uint32_t device, const struct ibv_async_event *event, int all) {
    for (uint32_t peer = 0; peer < c->config.world; peer++)
        for (uint32_t lane = 0; lane < c->config.lanes; lane++) {
            if (!used(c, peer, lane) || c->config.device[peer][lane] != device) continue;
            if (all || c->lane[peer][lane].qp == event->element.qp)
                break_lane(c, peer, lane, 0, 0, 0, (uint32_t)event->event_type);
        }
}

static void read_events(tv_context *c, uint32_t device) {
    struct ibv_async_event event;
    while (!ibv_get_async_event(c->device[device].context, &event)) {
        uint32_t kind = kind_of(event.event_type);
        tv_device_state *state = &c->device_state[device];
        state->events[kind]++;
        int ours = event.element.port_num == (int)c->device[device].port;
        if (kind == TV_PORT_ERROR && ours) state->down = 1;
        if (kind == TV_PORT_ACTIVE && ours) state->down = 0;
        int all = kind == TV_DEVICE_FATAL;
        /* Where a lane can be spared, these need no proof by retries. */
        if (c->config.failover && kind == TV_PORT_ERROR) all = ours;
        if (c->config.failover && kind == TV_GID_CHANGE)
            all = gid_now(&c->device[device]) != (int)c->device[device].gid_index;
        if (kind == TV_QP_EVENT || all) {
            pthread_mutex_lock(&c->lock);
            break_of_event(c, device, &event, all);
            pthread_mutex_unlock(&c->lock);
        }
        ibv_ack_async_event(&event);
    }
}

/* ---- the thread ----------------------------------------------------------------------------------- */

static void *serve(void *context) {
    tv_context *c = context;
    struct pollfd events[TV_MAX_DEVICES];
    for (uint32_t i = 0; i < c->devices; i++)
        events[i] = (struct pollfd){
            c->device[i].context ? c->device[i].context->async_fd : -1, POLLIN, 0};
    while (!stopping(c)) {
        if (poll(events, c->devices, TV_POLL_MS) > 0)
            for (uint32_t i = 0; i < c->devices; i++)
                if (events[i].revents) read_events(c, i);
        pthread_mutex_lock(&c->lock);
        c->wakeups++;
        drain(c);
        relay(c);
        for (uint32_t peer = 0; c->config.failover && peer < c->config.world; peer++)
            if (peer != c->config.rank) look_after(c, peer);
        uint64_t now = now_ns();
        if (now >= c->next_beat) {
            c->next_beat = now + c->config.beat_ms * 1000000u;
            beat(c);
        }
        pthread_mutex_unlock(&c->lock);
    }
    return NULL;
}

/* Which lanes to a peer are connected, a bit each; the others are broken from the start. */
static uint32_t connected(tv_context *c, uint32_t peer) {
    uint32_t up = 0;
    for (uint32_t lane = 0; lane < c->config.lanes; lane++) {
        c->lane[peer][lane].by = lane;
        if (!used(c, peer, lane)) continue;
        if (c->lane[peer][lane].rkey) {
            up |= 1u << lane;
            continue;
        }
        break_lane(c, peer, lane, 0, 0, 0, 0);
        c->state[peer][lane].found_by = TV_ABSENT;
    }
    return up;
}

/* Begins to beat; every peer must be connected by now. Returns 0 on failure. */
int tv_start(tv_context *c) {
    for (uint32_t peer = 0; peer < c->config.world; peer++) {
        uint32_t wired = 0;
        for (uint32_t lane = 0; lane < c->config.lanes; lane++) wired += (uint32_t)used(c, peer, lane);
        tf_open(&c->pair[peer], wired, connected(c, peer));
    }
    int error = pthread_create(&c->thread, NULL, serve, c);
    if (error) return refuse(c, "no thread", error);
    c->running = 1;
    if (!c->config.failover) return 1;
    error = pthread_create(&c->mender, NULL, mend, c);
    if (error) return refuse(c, "no second thread", error);
    c->running = 2;
    return 1;
}

static int quiet(tv_context *c) {
    int busy = 0;
    pthread_mutex_lock(&c->lock);
    drain(c);
    for (uint32_t peer = 0; peer < c->config.world; peer++)
        for (uint32_t lane = 0; lane < c->config.lanes; lane++)
            busy |= used(c, peer, lane) && !c->state[peer][lane].broken && c->lane[peer][lane].beating;
    pthread_mutex_unlock(&c->lock);
    return !busy;
}

/* Waits, at most `limit_ns`, until every living lane has delivered all that was posted, the last
 * status of this rank included. */
int tv_flush(tv_context *c, uint64_t limit_ns) {
    uint64_t end = now_ns() + limit_ns;
    for (int round = 0; round < 2; round++) {
        while (!quiet(c)) {
            if (now_ns() >= end) return 0;
            nanosleep(&(struct timespec){0, 500000}, NULL);
        }
        /* A beat that was under way may be older than the last status: one more. */
        pthread_mutex_lock(&c->lock);
        relay(c);
        if (round == 0) beat(c);
        pthread_mutex_unlock(&c->lock);
    }
    return 1;
}

/* ---- life ------------------------------------------------------------------------------------------- */

static struct ibv_context *open_device(const char *name) {
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);
    struct ibv_context *found = NULL;
    for (int i = 0; list && i < count; i++)
        if (!strcmp(ibv_get_device_name(list[i]), name)) found = ibv_open_device(list[i]);
    if (list) ibv_free_device_list(list);
    return found;
}

/* Returns the active MTU of a port in bytes, 0 with errno when it cannot be read. */
uint32_t tv_port_mtu(const char *name, uint32_t port) {
    struct ibv_port_attr found;
    struct ibv_context *context = open_device(name);
    if (!context) {
        if (!errno) errno = ENODEV;
        return 0;
    }
    int error = ibv_query_port(context, (uint8_t)port, &found);
    ibv_close_device(context);
    errno = error;
    return error ? 0 : 128u << found.active_mtu;
}

tv_context *tv_open(const tv_config *config) {
    tv_context *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->config = *config;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->broke, NULL);
    return c;
}

/* Opens the next device and registers the region with it. Returns its rkey, 0 on failure; the
 * device keeps its place then, without a lane. */
uint32_t tv_add_device(tv_context *c, const char *name, uint32_t port, uint32_t gid_index,
                       const uint8_t *gid) {
    tv_device *device = &c->device[c->devices++];
    *device = (tv_device){.port = port, .gid_index = gid_index};
    memcpy(device->gid, gid, 16);
    errno = 0;
    device->context = open_device(name);
    if (!device->context) return (uint32_t)refuse(c, "ibv_open_device", errno ? errno : ENODEV);
    int flags = fcntl(device->context->async_fd, F_GETFL);
    if (fcntl(device->context->async_fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return (uint32_t)refuse(c, "the event descriptor", errno);
    device->pd = ibv_alloc_pd(device->context);
    if (!device->pd) return (uint32_t)refuse(c, "ibv_alloc_pd", errno);
    int entries = (int)(c->config.depth * (c->config.world - 1) * c->config.lanes);
    device->cq = ibv_create_cq(device->context, entries, NULL, NULL, 0);
    if (!device->cq) return (uint32_t)refuse(c, "ibv_create_cq", errno);
    device->mr = ibv_reg_mr(device->pd, region(c), c->config.bytes,
                            IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (!device->mr) return (uint32_t)refuse(c, "ibv_reg_mr (see ulimit -l)", errno);
    return device->mr->rkey;
}

/* Makes the queue pair of one peer's lane. Returns its number, 0 on failure. */
uint32_t tv_add_lane(tv_context *c, uint32_t peer, uint32_t lane) {
    struct ibv_qp *made = make_qp(c, &c->device[c->config.device[peer][lane]]);
    if (!made) return (uint32_t)refuse(c, "a queue pair in INIT", errno);
    c->lane[peer][lane].qp = made;
    c->state[peer][lane].qp = made->qp_num;
    return made->qp_num;
}

/* Connects one lane; `own_number` is where this end begins to count. Returns 0 on failure. */
int tv_join(tv_context *c, uint32_t peer, uint32_t lane, uint32_t own_number, const tv_remote *remote) {
    tv_device *device = &c->device[c->config.device[peer][lane]];
    if (!connect_qp(c, device, c->lane[peer][lane].qp, own_number, remote)) return 0;
    prebuild(c, peer, lane, remote);
    return 1;
}

/* Ends the threads and releases everything. The region must still be mapped. */
void tv_close(tv_context *c) {
    pthread_mutex_lock(&c->lock);
    atomic_store((_Atomic uint32_t *)&c->stop, 1);
    pthread_cond_signal(&c->broke);
    pthread_mutex_unlock(&c->lock);
    if (c->running > 0) pthread_join(c->thread, NULL);
    if (c->running > 1) pthread_join(c->mender, NULL);
    for (uint32_t i = 0; i < TV_MAX_WORLD * TV_MAX_LANES; i++) {
        tv_lane *one = &c->lane[i / TV_MAX_LANES][i % TV_MAX_LANES];
        if (one->qp) ibv_destroy_qp(one->qp);
        if (one->spent) ibv_destroy_qp(one->spent);
    }
    for (uint32_t i = 0; i < c->devices; i++) {
        tv_device *device = &c->device[i];
        if (device->mr) ibv_dereg_mr(device->mr);
        if (device->cq) ibv_destroy_cq(device->cq);
        if (device->pd) ibv_dealloc_pd(device->pd);
        if (device->context) ibv_close_device(device->context);
    }
    pthread_cond_destroy(&c->broke);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

/* Text of a completion's status, and of an event's type. */
const char *tv_status_text(uint32_t status) { return ibv_wc_status_str((enum ibv_wc_status)status); }
const char *tv_event_text(uint32_t event) { return ibv_event_type_str((enum ibv_event_type)event); }

/* Numbers that must equal the loader's own before anything else is called. */
uint32_t tv_abi(uint32_t *out, uint32_t capacity) {
    const uint32_t numbers[] = {
        TV_ABI, TV_MAX_WORLD, TV_MAX_LANES, TV_MAX_DEVICES, sizeof(ts_write), sizeof(ts_progress),
        offsetof(ts_progress, acked), sizeof(tv_status), sizeof(tv_config), offsetof(tv_config, base),
        sizeof(tv_lane_state), sizeof(tv_device_state), sizeof(tv_remote), offsetof(tv_remote, gid),
        offsetof(tv_context, device_state), offsetof(tv_context, error), TV_MAIL, sizeof(tv_lane),
    };
    uint32_t count = sizeof numbers / sizeof *numbers;
    for (uint32_t i = 0; i < count && i < capacity; i++) out[i] = numbers[i];
    return count;
}

/* The relay of a group of kernels whose peers' memory is behind a NIC: posts what kernels staged.
 *
 * It is one text with proxy.c before it. A kernel stages into this rank's own send slots and then
 * marks the stripe in the outbox, a line of this rank's region a parity and stripe: the units that
 * each peer gets of the whole operation, and after a fence the flag. The relay takes the marks of a
 * stripe in the order of their sequences and gives the mover one write a peer. Peers' flags and
 * payloads arrive in this rank's receive slots, where its kernels wait for them.
 *
 * A mark is not written again before it is taken: the kernel of k+2 has this outbox line, and it
 * starts after the kernel of k+1 has ended, which had every peer's flag of k+1; a peer sends that
 * after it had this rank's flag of k, so the mark of k was taken. For a mover that had to be asked
 * again the same holds: all writes of k to that peer are given before its flag can be there; to
 * another peer they are given before this rank has that peer's flag of k+1.
 */
#include <pthread.h>

#define TS_QUIET_NS 1000000000u /* without a mark for so long, looks are TS_REST_NS apart */
#define TS_REST_NS 500000u

typedef struct {
    uint64_t flag, reserved;
    uint32_t units[TS_MAX_WORLD];
    uint32_t padding[20];
} ts_mark;

_Static_assert(sizeof(ts_mark) == TS_LINE, "a mark fills one line");
_Static_assert(offsetof(ts_mark, units) == 16, "the kernels write TS_MARK_UNITS");

typedef struct {
    uint64_t marks, stalls, naps;
    ts_endpoint *ep;
    uint64_t spin_ns;
    uint32_t taken[TS_MAX_LANES]; /* sequence of the last mark that was taken, of each stripe */
    uint32_t given[TS_MAX_LANES]; /* peers that have their write of the next */
    uint32_t stop, running;
    pthread_t thread;
} ts_relay;

static const ts_mark *mark_at(const ts_endpoint *ep, uint32_t sequence, uint32_t stripe) {
    uint64_t line = (sequence & 1u) * ep->config.lanes + stripe;
    return (const ts_mark *)(region(ep, ep->config.rank) + ep->config.outbox + line * TS_LINE);
}

static ts_write write_of(const ts_endpoint *ep, const ts_mark *mark, uint64_t flag, uint32_t peer,
                         uint32_t stripe) {
    const ts_config *c = &ep->config;
    uint32_t said[4];
    ts_flag_unpack(flag, said);
    uint32_t sequence = said[0], op = said[1], total = mark->units[peer], count = c->route_count[peer];
    uint32_t rest = total % count;
    uint64_t units = total / count + (stripe < rest);
    uint64_t first = (uint64_t)stripe * (total / count) + (stripe < rest ? stripe : rest);
    /* The header travels with the first stripe. */
    uint64_t at = stripe ? TS_LINE + first * 16u : 0, bytes = units * 16u + (stripe ? 0 : TS_LINE);
    return (ts_write){
        .peer = peer, .lane = c->route[peer][stripe], .stripe = stripe, .sequence = sequence,
        .source = send_offset(ep, c->rank, peer, op, sequence) + at,
        .target = recv_offset(ep, peer, c->rank, op, sequence) + at, .bytes = bytes,
        .flag_target = flag_offset(ep, peer, c->rank, sequence, stripe), .flag = flag,
    };
}

/* Gives the writes of one stripe's next mark, if it is there. Returns 1 when all were taken. */
static int take_mark(ts_relay *relay, uint32_t stripe) {
    ts_endpoint *ep = relay->ep;
    const ts_config *c = &ep->config;
    uint32_t next = ts_next_sequence(relay->taken[stripe]);
    const ts_mark *mark = mark_at(ep, next, stripe);
    uint64_t flag = atomic_load_explicit((const _Atomic uint64_t *)&mark->flag, memory_order_acquire);
    if (flag >> 32 != next) return 0;
    for (; relay->given[stripe] < c->world - 1; relay->given[stripe]++) {
        uint32_t peer = (c->rank + 1 + relay->given[stripe]) % c->world;
        ts_write write = write_of(ep, mark, flag, peer, stripe);
        if (!ep->mover(ep->mover_context, &write)) {
            relay->stalls++;
            return 0;
        }
        ep->counters.writes[peer][write.lane]++;
        ep->counters.bytes[peer][write.lane] += write.bytes;
    }
    relay->given[stripe] = 0;
    relay->taken[stripe] = next;
    relay->marks++;
    return 1;
}

/* One look at every stripe; returns the marks that were taken. */
uint32_t ts_relay_step(ts_relay *relay) {
    uint32_t taken = 0, lanes = relay->ep->config.lanes;
    for (uint32_t stripe = 0; stripe < lanes; stripe++) taken += (uint32_t)take_mark(relay, stripe);
    if (!taken) return 0;
    uint32_t oldest = relay->taken[0];
    for (uint32_t stripe = 1; stripe < lanes; stripe++)
        if ((int32_t)(relay->taken[stripe] - oldest) < 0) oldest = relay->taken[stripe];
    publish(&progress(relay->ep)->posted, oldest);
    return taken;
}

static void nap(uint64_t nanoseconds) { nanosleep(&(struct timespec){0, (long)nanoseconds}, NULL); }

static void *serve(void *context) {
    ts_relay *relay = context;
    uint64_t last = now_ns();
    while (!atomic_load_explicit((_Atomic uint32_t *)&relay->stop, memory_order_relaxed)) {
        if (ts_relay_step(relay)) {
            last = now_ns();
            continue;
        }
        uint64_t quiet = now_ns() - last;
        if (quiet < relay->spin_ns) {
            relax();
            continue;
        }
        relay->naps++;
        nap(quiet < TS_QUIET_NS ? TS_NAP_NS : TS_REST_NS);
    }
    return NULL;
}

/* Makes the relay of an endpoint that has a mover and begins no operation itself any more. */
ts_relay *ts_relay_open(ts_endpoint *ep, uint64_t spin_ns) {
    ts_relay *relay = ep->mover ? calloc(1, sizeof *relay) : NULL;
    if (!relay) return NULL;
    relay->ep = ep;
    relay->spin_ns = spin_ns;
    uint32_t last = progress(ep)->doorbell;
    for (uint32_t stripe = 0; stripe < TS_MAX_LANES; stripe++) relay->taken[stripe] = last;
    return relay;
}

/* Begins to look from a thread of its own. Returns 0, or the error of its creation. */
int ts_relay_start(ts_relay *relay) {
    int error = pthread_create(&relay->thread, NULL, serve, relay);
    relay->running = !error;
    return error;
}

void ts_relay_close(ts_relay *relay) {
    atomic_store((_Atomic uint32_t *)&relay->stop, 1);
    if (relay->running) pthread_join(relay->thread, NULL);
    free(relay);
}

/* A mover between regions of one host, in the place of a NIC. */
int ts_copy(void *context, const ts_write *write) {
    ts_endpoint *ep = context;
    uint8_t *peer = region(ep, write->peer);
    memcpy(peer + write->target, region(ep, ep->config.rank) + write->source, write->bytes);
    atomic_store_explicit((_Atomic uint64_t *)(peer + write->flag_target), write->flag,
                          memory_order_release);
    publish(&progress(ep)->acked[write->peer][write->lane], write->sequence);
    return 1;
}

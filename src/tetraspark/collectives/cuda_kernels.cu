/* All-reduce and all-gather through mapped host memory; docs/cuda-collectives.md.
 *
 * A launch is one operation: stage, publish, wait, reduce or copy, advance. Two forms:
 * - a block a stripe (grid 1 x stripes) does all steps for it and waits for no other block;
 * - for large operations (grid blocks x 1) the first d.stagers blocks stage stripe after stripe,
 *   one block polls, the others reduce what has arrived: reads and writes cross PCIe together.
 * No line of host memory is read by two blocks: the GPU serves such reads one after the other.
 */

#define TS_POLLS 1024u
#define TS_PEERS (TS_WORLD - 1)
#define TS_ALL 0xffffffffu

struct ts_shared {
    u32 sequence, verdict;
};

/* A share of a stripe: every count-th run of TS_THREADS pieces, from the index-th on. */
struct ts_share {
    u32 index, count;
};

/* Pieces [first, end) of the input, for one peer or TS_ALL; a piece lands `skip` pieces before its
 * own place in the slot. */
struct ts_span {
    u32 first, end, skip, peer;
};

/* ---- failing ------------------------------------------------------------------------------------ */

/* The first finding stays: later launches do nothing, and the host reads the report. */
static __device__ void poison(const ts_device &d, u32 kind, u32 peer, u32 stripe, u32 sequence,
                              u64 mine, u64 theirs, u64 waited) {
    ts_state *state = (ts_state *)d.state;
    if (atomicCAS(&state->poison, 0u, kind) != 0u) return;
    volatile ts_report *report = (volatile ts_report *)d.report;
    report->kind = kind;
    report->peer = peer;
    report->stripe = stripe;
    report->sequence = sequence;
    report->mine = mine;
    report->theirs = theirs;
    report->waited_ns = waited;
    fence_system();
    report->valid = 1u;
}

/* ---- the steps of one operation ------------------------------------------------------------------ */

/* Returns this launch's sequence, or 0 when the group is poisoned. */
static __device__ u32 enter(const ts_config &c, const ts_device &d, ts_shared &shared) {
    if (threadIdx.x == 0) {
        const volatile ts_state *state = (const volatile ts_state *)d.state;
        u32 sequence = state->sequence, poisoned = state->poison;
        shared.sequence = poisoned ? 0u : ts_next_sequence(sequence);
        shared.verdict = 0u;
        if (shared.sequence && blockIdx.x == 0 && blockIdx.y == 0)
            store_word(c.base[c.rank] + c.progress + TS_DOORBELL, shared.sequence);
    }
    __syncthreads();
    return shared.sequence;
}

/* The header in the own send slot, in four 16-byte stores: for hosts, to name shapes, and for peers
 * behind a NIC, who find it in front of the first stripe. */
static __device__ void stage_header(const ts_config &c, const ts_request &r, u32 sequence) {
    u32 part = threadIdx.x % 4u, peer = threadIdx.x / 4u;
    u32 copies = !c.direct && ts_scatters(r.op) ? TS_PEERS : 1u; /* a slot a peer */
    if (peer >= copies) return;
    peer += peer >= c.rank;
    u64 flag = ts_flag_pack(sequence, r.op, r.dtype, ts_units(r.bytes[c.rank]));
    u64 digest = ts_digest(r, c.rank);
    u32 words[16] = {(u32)flag, (u32)(flag >> 32), r.ndim};
    words[TS_DIGEST / 4u] = (u32)digest, words[TS_DIGEST / 4u + 1u] = (u32)(digest >> 32);
#pragma unroll
    for (u32 i = 0; i < TS_MAX_DIMS; i++) words[3 + i] = r.dims[i];
    ts_piece<16> piece;
    piece.x = part == 0u ? words[0] : part == 1u ? words[4] : part == 2u ? words[8] : words[12];
    piece.y = part == 0u ? words[1] : part == 1u ? words[5] : part == 2u ? words[9] : words[13];
    piece.z = part == 0u ? words[2] : part == 1u ? words[6] : part == 2u ? words[10] : words[14];
    piece.w = part == 0u ? words[3] : part == 1u ? words[7] : part == 2u ? words[11] : words[15];
    piece.store(c.base[c.rank] + ts_send_slot(c, c.rank, peer, r.op, sequence) + part * 16u);
}

template <int V> using ts_round = ts_piece<V>[TS_UNROLL];

/* Loads a thread's next pieces of the input, V bytes each. */
template <int V>
static __device__ void load_round(const ts_request &r, u32 at, u32 end, u32 step, ts_round<V> &piece) {
#pragma unroll
    for (u32 u = 0; u < TS_UNROLL; u++)
        if (at + u * step < end) piece[u].load(r.input + (u64)(at + u * step) * V);
}

/* A thread's first place in a span. */
TS_FN u32 begin(ts_span span, ts_share share) {
    return span.first + share.index * TS_THREADS + threadIdx.x;
}

/* Copies a span of the input to where peers will read it; the first round of loads has been made
 * already, before the epoch was known. */
template <int V>
static __device__ void stage(const ts_config &c, const ts_request &r, u32 sequence, ts_span span,
                             ts_share share, ts_round<V> &piece) {
    u32 step = share.count * TS_THREADS, targets = ts_stages_here(c) || span.peer != TS_ALL ? 1u : TS_PEERS;
    u32 at = begin(span, share);
    while (at < span.end) {
        for (u32 t = 0; t < targets; t++) {
            u32 peer = span.peer == TS_ALL ? t + (t >= c.rank) : span.peer;
            u64 slot = ts_target(c, peer, r.op, sequence) + TS_LINE - (u64)span.skip * V;
#pragma unroll
            for (u32 u = 0; u < TS_UNROLL; u++)
                if (at + u * step < span.end) piece[u].store(slot + (u64)(at + u * step) * V);
        }
        at += step * TS_UNROLL;
        load_round<V>(r, at, span.end, step, piece);
    }
}

/* Loads the first round of a stripe. */
template <typename Op>
static __device__ void load_stripe(const ts_config &c, const ts_request &r, u32 stripe,
                                   ts_share share, ts_round<Op::width> &piece) {
    ts_span span = Op::span(c, r, stripe, 0u);
    load_round<Op::width>(r, begin(span, share), span.end, share.count * TS_THREADS, piece);
}

/* Stages all parts of a stripe; the first one's first round is loaded. */
template <typename Op>
static __device__ void stage_stripe(const ts_config &c, const ts_request &r, u32 sequence,
                                    u32 stripe, ts_share share, ts_round<Op::width> &piece) {
    stage<Op::width>(c, r, sequence, Op::span(c, r, stripe, 0u), share, piece);
    for (u32 part = 1u; part < Op::parts; part++) {
        ts_span span = Op::span(c, r, stripe, part);
        load_round<Op::width>(r, begin(span, share), span.end, share.count * TS_THREADS, piece);
        stage<Op::width>(c, r, sequence, span, share, piece);
    }
}

/* First warp, once a stripe is staged and a barrier has passed: its mark, for the relay. */
static __device__ void hand_over(const ts_config &c, const ts_request &r, u32 sequence, u32 stripe) {
    u32 lane = threadIdx.x;
    u64 place = ts_mark_place(c, sequence, stripe);
    if (lane < TS_WORLD) {
        u64 bytes = ts_scatters(r.op) ? r.row_bytes[lane] : r.bytes[c.rank];
        store_word(place + TS_MARK_UNITS + lane * 4u, ts_units(bytes));
    }
    __syncwarp();
    if (lane != 0u) return;
    fence_system();
    store_long(place, ts_flag_pack(sequence, r.op, r.dtype, ts_units(r.bytes[c.rank])));
}

/* First warp, once a stripe is staged and a barrier has passed: its flag, to every peer. */
static __device__ void publish(const ts_config &c, const ts_request &r, u32 sequence, u32 stripe,
                               bool account) {
    if (!c.direct) {
        hand_over(c, r, sequence, stripe);
        return;
    }
    u32 lane = threadIdx.x, peer = (c.rank + 1u + lane) % TS_WORLD;
    u64 place = 0;
    if (lane < TS_PEERS) {
        place = c.base[peer] + ts_flag_place(c, peer, c.rank, sequence, stripe);
        store_long(place + 8u, ts_digest(r, c.rank));
        fence_system();
        store_long(place, ts_flag_pack(sequence, r.op, r.dtype, ts_units(r.bytes[c.rank])));
    }
    if (!account) return;
    u64 progress = c.base[c.rank] + c.progress;
    store_word(progress + TS_ACKED + lane * 4u, sequence);
    if (lane == 0) store_word(progress + TS_POSTED, sequence);
}

/* A whole warp: one lane a peer polls its flag of one stripe; `local`, if any, must be reached too.
 * Returns 0, or the kind of what was wrong, the same on all lanes; the group is then poisoned. */
static __device__ u32 wait(const ts_config &c, const ts_request &r, const ts_device &d, u32 sequence,
                           u32 stripe, const u32 *local) {
    u32 lane = threadIdx.x % 32u, peer = lane + (lane >= c.rank);
    bool far = lane < TS_PEERS, pending = far || (local && lane == 31u);
    u64 place = 0, told = 0, expected = 0, shape = 0, seen = 0, digest = 0, started = 0, waited = 0;
    if (far) {
        place = c.base[c.rank] + ts_flag_place(c, c.rank, peer, sequence, stripe);
        expected = ts_flag_pack(sequence, r.op, r.dtype, ts_units(r.bytes[peer]));
        shape = ts_digest(r, peer);
        if (c.direct) told = place + 8u;
        else if (stripe == 0u) told = ts_arrived(c, peer, r.op, sequence) + TS_DIGEST;
    }
    u32 bad = 0u, polls = 0u;
    for (;;) {
        if (pending && far) {
            load_flag(place, seen, digest);
            u32 found = ts_judge(seen, expected, sequence);
            pending = found == TS_PENDING;
            bad = pending ? 0u : found;
            /* The two words of a load are not ordered; once the flag is acquired the digest is. */
            if (!found && digest != shape && told && load_relaxed(told) != shape) bad = TS_MISMATCH;
        } else if (pending) {
            pending = load_acquire_gpu(local) != sequence;
        }
        if (__any_sync(TS_ALL, bad) || !__any_sync(TS_ALL, pending)) break;
        if (++polls % TS_POLLS == 0u) {
            u32 stop = 0u;
            if (lane == 0) {
                u64 now = now_ns();
                started = started ? started : now;
                waited = now - started;
                if (load_relaxed(c.base[c.rank] + c.abort_word)) stop = TS_ABORTED;
                else if (waited > d.deadline_ns) stop = TS_DEADLINE;
            }
            stop = __shfl_sync(TS_ALL, stop, 0);
            waited = __shfl_sync(TS_ALL, waited, 0);
            if (stop && pending && far) bad = stop;
            if (__any_sync(TS_ALL, bad)) break;
        }
    }
    u32 wrong = __ballot_sync(TS_ALL, bad != 0u);
    if (!wrong) return 0u;
    u32 first = __ffs(wrong) - 1;
    if (lane == first) {
        u64 mine = ts_flag_pack(sequence, r.op, r.dtype, ts_units(r.bytes[c.rank]));
        poison(d, bad, peer, stripe, sequence, mine, seen, waited);
    }
    return __shfl_sync(TS_ALL, bad, first);
}

/* Once a block has passed its waits: the last one moves the epoch, which only later launches read.
 * The last thread does it, so that at small sizes no warp with data to move waits for it. */
static __device__ void advance(const ts_config &c, const ts_device &d, u32 sequence) {
    if (threadIdx.x != TS_THREADS - 1u) return;
    ts_state *state = (ts_state *)d.state;
    u32 blocks = gridDim.x * gridDim.y;
    if (blocks > 1u && add_acq_rel(&state->tail, 1u) + 1u != blocks) return;
    state->tail = 0u;
    for (u32 i = 0; d.stagers && i < TS_MAX_LANES; i++)
        state->staged[i] = state->published[i] = state->arrived[i] = 0u;
    state->sequence = sequence;
    store_word(c.base[c.rank] + c.progress + TS_COMPLETED, sequence);
}

/* ---- sums ------------------------------------------------------------------------------------------ */

struct ts_bf16 {
    enum { count = 2 };
    static __device__ void add(float *sum, u32 word) {
        sum[0] = __fadd_rn(sum[0], __uint_as_float(word << 16));
        sum[1] = __fadd_rn(sum[1], __uint_as_float(word & 0xffff0000u));
    }
    static __device__ void set(float *sum, u32 word) {
        sum[0] = __uint_as_float(word << 16), sum[1] = __uint_as_float(word & 0xffff0000u);
    }
    static __device__ u32 get(const float *sum) {
        return ts_bf16_bits(__float_as_uint(sum[0])) | ts_bf16_bits(__float_as_uint(sum[1])) << 16;
    }
};

struct ts_fp16 {
    enum { count = 2 };
    static __device__ void add(float *sum, u32 word) {
        sum[0] = __fadd_rn(sum[0], widen_half(word & 0xffffu)), sum[1] = __fadd_rn(sum[1], widen_half(word >> 16));
    }
    static __device__ void set(float *sum, u32 word) {
        sum[0] = widen_half(word & 0xffffu), sum[1] = widen_half(word >> 16);
    }
    static __device__ u32 get(const float *sum) { return narrow_half(sum[0]) | narrow_half(sum[1]) << 16; }
};

struct ts_fp32 {
    enum { count = 1 };
    static __device__ void add(float *sum, u32 word) { *sum = __fadd_rn(*sum, __uint_as_float(word)); }
    static __device__ void set(float *sum, u32 word) { *sum = __uint_as_float(word); }
    static __device__ u32 get(const float *sum) { return __float_as_uint(*sum); }
};

template <typename T> TS_FN u32 sum_word(const u32 *word) {
    float sum[2];
    T::set(sum, word[0]);
#pragma unroll
    for (u32 rank = 1; rank < TS_WORLD; rank++) T::add(sum, word[rank]);
    return T::get(sum);
}

template <typename T> TS_FN ts_piece<16> sum_pieces(const ts_piece<16> *from) {
    ts_piece<16> sum;
    u32 word[4][TS_WORLD];
#pragma unroll
    for (u32 rank = 0; rank < TS_WORLD; rank++) {
        word[0][rank] = from[rank].x, word[1][rank] = from[rank].y;
        word[2][rank] = from[rank].z, word[3][rank] = from[rank].w;
    }
    sum.x = sum_word<T>(word[0]), sum.y = sum_word<T>(word[1]);
    sum.z = sum_word<T>(word[2]), sum.w = sum_word<T>(word[3]);
    return sum;
}

/* ---- the operations ---------------------------------------------------------------------------------- */

/* Sums pieces [first, end) of all ranks; `from`: the place of each rank's piece 0. */
template <typename T>
static __device__ void sum_span(const u64 *from, u64 output, ts_span span, ts_share share) {
    u32 step = share.count * TS_THREADS;
    for (u32 at = begin(span, share); at < span.end; at += step * TS_UNROLL) {
        ts_piece<16> piece[TS_UNROLL][TS_WORLD];
#pragma unroll
        for (u32 u = 0; u < TS_UNROLL; u++)
#pragma unroll
            for (u32 rank = 0; rank < TS_WORLD; rank++)
                if (at + u * step < span.end)
                    piece[u][rank].load(from[rank] + (u64)(at + u * step) * 16u);
#pragma unroll
        for (u32 u = 0; u < TS_UNROLL; u++)
            if (at + u * step < span.end)
                sum_pieces<T>(piece[u]).store(output + (u64)(at + u * step) * 16u);
    }
}

/* T: the dtype's arithmetic. Pieces are 16 bytes. */
template <typename T> struct ts_all_reduce {
    enum { width = 16, parts = 1 };

    static __device__ ts_span span(const ts_config &c, const ts_request &r, u32 stripe, u32) {
        u32 units = ts_units(r.bytes[c.rank]);
        return {ts_stripe_first(units, c.lanes, stripe), ts_stripe_first(units, c.lanes, stripe + 1u),
                0u, TS_ALL};
    }

    static __device__ void finish_stripe(const ts_config &c, const ts_request &r, u32 sequence,
                                         u32 stripe, ts_share share) {
        u64 from[TS_WORLD];
#pragma unroll
        for (u32 rank = 0; rank < TS_WORLD; rank++)
            from[rank] = rank == c.rank ? r.input : ts_arrived(c, rank, r.op, sequence) + TS_LINE;
        sum_span<T>(from, r.output, span(c, r, stripe, 0u), share);
    }
};

/* A chunk a rank, each peer sent its own. Stripe s holds the s-th part of every chunk. */
struct ts_chunks {
    enum { width = 16, parts = TS_PEERS };

    static __device__ ts_span chunk(const ts_config &c, const ts_request &r, u32 stripe, u32 owner) {
        ts_span span = {0u, 0u, ts_units(r.out_offset[owner]), owner};
        ts_chunk(r, owner, c.lanes, stripe, span.first, span.end);
        return span;
    }

    /* A part a peer, from the next rank on, so that not all start with the same one. */
    static __device__ ts_span span(const ts_config &c, const ts_request &r, u32 stripe, u32 part) {
        return chunk(c, r, stripe, (c.rank + 1u + part) % TS_WORLD);
    }

    /* Where each rank's contribution to this rank's chunk lies, as if the whole input were there. */
    static __device__ void places(const ts_config &c, const ts_request &r, u32 sequence, u64 *from) {
#pragma unroll
        for (u32 rank = 0; rank < TS_WORLD; rank++) {
            u64 slot = ts_arrived(c, rank, r.op, sequence) + TS_LINE - r.out_offset[c.rank];
            from[rank] = rank == c.rank ? r.input : slot;
        }
    }
};

/* The sum of this rank's chunk. The own one is read where it is: it is staged nowhere. */
template <typename T> struct ts_reduce_scatter : ts_chunks {
    static __device__ void finish_stripe(const ts_config &c, const ts_request &r, u32 sequence,
                                         u32 stripe, ts_share share) {
        u64 from[TS_WORLD];
        places(c, r, sequence, from);
        sum_span<T>(from, r.output - r.out_offset[c.rank], chunk(c, r, stripe, c.rank), share);
    }
};

/* Every rank's chunk for this one, side by side: the proof of the chunk slots. */
struct ts_exchange_chunks : ts_chunks {
    static __device__ void finish_stripe(const ts_config &c, const ts_request &r, u32 sequence,
                                         u32 stripe, ts_share share) {
        ts_span span = chunk(c, r, stripe, c.rank);
        u64 from[TS_WORLD];
        places(c, r, sequence, from);
        for (u32 at = begin(span, share); at < span.end; at += share.count * TS_THREADS)
#pragma unroll
            for (u32 rank = 0; rank < TS_WORLD; rank++) {
                ts_piece<16> piece;
                piece.load(from[rank] + at * 16ull);
                piece.store(r.output + r.out_offset[rank] + (at - span.skip) * 16ull);
            }
    }
};

/* V: bytes a piece, dividing every row, offset and address. */
template <int V> struct ts_all_gather {
    enum { width = V, parts = 1 };

    static __device__ void bounds(const ts_request &r, const ts_config &c, u32 rank, u32 stripe,
                                  u32 &first, u32 &end) {
        u32 units = ts_units(r.bytes[rank]), bytes = (u32)r.bytes[rank];
        u32 low = ts_stripe_first(units, c.lanes, stripe) * TS_UNIT;
        u32 high = ts_stripe_first(units, c.lanes, stripe + 1u) * TS_UNIT;
        first = (low < bytes ? low : bytes) / V;
        end = (high < bytes ? high : bytes) / V;
    }

    static __device__ ts_span span(const ts_config &c, const ts_request &r, u32 stripe, u32) {
        u32 first, end;
        bounds(r, c, c.rank, stripe, first, end);
        return {first, end, 0u, TS_ALL};
    }

    static __device__ void finish_stripe(const ts_config &c, const ts_request &r, u32 sequence,
                                         u32 stripe, ts_share share) {
        u64 from[TS_WORLD];
        u32 first[TS_WORLD], count[TS_WORLD], most = 0u;
#pragma unroll
        for (u32 rank = 0; rank < TS_WORLD; rank++) {
            u32 end;
            bounds(r, c, rank, stripe, first[rank], end);
            count[rank] = end - first[rank];
            most = count[rank] > most ? count[rank] : most;
            from[rank] = rank == c.rank ? r.input : ts_arrived(c, rank, r.op, sequence) + TS_LINE;
        }
        u32 step = share.count * TS_THREADS;
        for (u32 at = share.index * TS_THREADS + threadIdx.x; at < most; at += step) {
            ts_piece<V> piece[TS_WORLD];
#pragma unroll
            for (u32 rank = 0; rank < TS_WORLD; rank++)
                if (at < count[rank]) piece[rank].load(from[rank] + (u64)(first[rank] + at) * V);
#pragma unroll
            for (u32 rank = 0; rank < TS_WORLD; rank++)
                if (at < count[rank])
                    piece[rank].store(r.output + ts_gathered(r, rank, (first[rank] + at) * V));
        }
    }
};

/* ---- the two forms of a launch -------------------------------------------------------------------------- */

template <typename Op>
static __device__ void whole_stripe(const ts_config &c, const ts_request &r, const ts_device &d,
                                    ts_shared &shared) {
    u32 stripe = blockIdx.y;
    ts_round<Op::width> piece;
    load_stripe<Op>(c, r, stripe, {0u, 1u}, piece);
    u32 sequence = enter(c, d, shared);
    if (!sequence) return;
    if (stripe == 0u) stage_header(c, r, sequence);
    stage_stripe<Op>(c, r, sequence, stripe, {0u, 1u}, piece);
    __syncthreads();
    if (threadIdx.x < 32u) {
        publish(c, r, sequence, stripe, stripe == 0u);
        u32 bad = wait(c, r, d, sequence, stripe, nullptr);
        if (bad && threadIdx.x == 0) shared.verdict = bad;
    }
    __syncthreads();
    if (shared.verdict) return;
    advance(c, d, sequence);
    Op::finish_stripe(c, r, sequence, stripe, {0u, 1u});
}

/* The last block to have staged a stripe publishes it, to the peers and to the own poller. */
template <typename Op>
static __device__ void stager(const ts_config &c, const ts_request &r, const ts_device &d, u32 sequence) {
    ts_state *state = (ts_state *)d.state;
    ts_share share = {blockIdx.x, d.stagers};
    if (blockIdx.x == 0) stage_header(c, r, sequence);
    for (u32 stripe = 0; stripe < c.lanes; stripe++) {
        ts_round<Op::width> piece;
        load_stripe<Op>(c, r, stripe, share, piece);
        stage_stripe<Op>(c, r, sequence, stripe, share, piece);
        __syncthreads();
        if (threadIdx.x >= 32u) continue;
        u32 last = 0u;
        if (threadIdx.x == 0) last = add_acq_rel(&state->staged[stripe], 1u) + 1u == d.stagers;
        last = __shfl_sync(TS_ALL, last, 0);
        __syncwarp(); /* what lane 0 acquired, the lanes that publish must have seen */
        if (!last) continue;
        publish(c, r, sequence, stripe, stripe + 1u == c.lanes);
        if (threadIdx.x == 0) store_release_gpu(&state->published[stripe], sequence);
    }
    __syncthreads();
    advance(c, d, sequence);
}

/* A warp a stripe polls the peers' flags and tells the reducers through device memory. */
static __device__ void poller(const ts_config &c, const ts_request &r, const ts_device &d, u32 sequence,
                              ts_shared &shared) {
    ts_state *state = (ts_state *)d.state;
    u32 stripe = threadIdx.x / 32u;
    if (stripe < c.lanes) {
        u32 bad = wait(c, r, d, sequence, stripe, &state->published[stripe]);
        if (threadIdx.x % 32u == 0) {
            if (bad) shared.verdict = bad;
            else store_release_gpu(&state->arrived[stripe], sequence);
        }
    }
    __syncthreads();
    if (!shared.verdict) advance(c, d, sequence);
}

template <typename Op>
static __device__ void reducer(const ts_config &c, const ts_request &r, const ts_device &d, u32 sequence,
                               ts_shared &shared) {
    ts_state *state = (ts_state *)d.state;
    ts_share share = {blockIdx.x - d.stagers - 1u, gridDim.x - d.stagers - 1u};
    for (u32 stripe = 0; stripe < c.lanes; stripe++) {
        if (threadIdx.x == 0)
            while (load_acquire_gpu(&state->arrived[stripe]) != sequence)
                if (load_acquire_gpu(&state->poison)) {
                    shared.verdict = 1u;
                    break;
                }
        __syncthreads();
        if (shared.verdict) return;
        Op::finish_stripe(c, r, sequence, stripe, share);
    }
    advance(c, d, sequence);
}

template <typename Op>
static __device__ void operate(const ts_config &c, const ts_request &r, const ts_device &d) {
    __shared__ ts_shared shared;
    if (!d.stagers) {
        whole_stripe<Op>(c, r, d, shared);
        return;
    }
    u32 sequence = enter(c, d, shared);
    if (!sequence) return;
    if (blockIdx.x < d.stagers) stager<Op>(c, r, d, sequence);
    else if (blockIdx.x == d.stagers) poller(c, r, d, sequence, shared);
    else reducer<Op>(c, r, d, sequence, shared);
}

#define TS_KERNEL(name, ...)                                                                      \
    extern "C" __global__ void __launch_bounds__(TS_THREADS)                                      \
        name(const __grid_constant__ ts_config c, const __grid_constant__ ts_request r,           \
             const __grid_constant__ ts_device d) {                                               \
        operate<__VA_ARGS__>(c, r, d);                                                            \
    }

TS_KERNEL(ts_all_reduce_bf16, ts_all_reduce<ts_bf16>)
TS_KERNEL(ts_all_reduce_fp16, ts_all_reduce<ts_fp16>)
TS_KERNEL(ts_all_reduce_fp32, ts_all_reduce<ts_fp32>)
TS_KERNEL(ts_reduce_scatter_bf16, ts_reduce_scatter<ts_bf16>)
TS_KERNEL(ts_reduce_scatter_fp16, ts_reduce_scatter<ts_fp16>)
TS_KERNEL(ts_reduce_scatter_fp32, ts_reduce_scatter<ts_fp32>)
TS_KERNEL(ts_exchange_chunks_16, ts_exchange_chunks)
TS_KERNEL(ts_all_gather_16, ts_all_gather<16>)
TS_KERNEL(ts_all_gather_8, ts_all_gather<8>)
TS_KERNEL(ts_all_gather_4, ts_all_gather<4>)
TS_KERNEL(ts_all_gather_2, ts_all_gather<2>)
TS_KERNEL(ts_all_gather_1, ts_all_gather<1>)

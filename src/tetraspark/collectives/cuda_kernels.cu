/* One-shot all-reduce and all-gather through mapped host memory; docs/cuda-collectives.md.
 *
 * Grid (blocks a stripe, stripes). A launch is one operation: stage, publish, wait, check, reduce
 * or copy, advance. Nothing in a launch waits for another block of the same launch.
 */

#define TS_POLLS 1024u
#define TS_PEERS (TS_WORLD - 1)
#define TS_ALL 0xffffffffu

struct ts_shared {
    u32 sequence, publish, verdict;
};

/* ---- loads and stores with their scopes ------------------------------------------------------- */

TS_FN u64 load_acquire(u64 at) {
    u64 value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}

TS_FN u64 load_relaxed(u64 at) {
    u64 value;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}

TS_FN void store_flag(u64 at, u64 value) {
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}

TS_FN void store_word(u64 at, u32 value) {
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

TS_FN void fence_system() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

TS_FN u32 add_acq_rel(u32 *at, u32 value) {
    u32 old;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;"
                 : "=r"(old) : "l"(at), "r"(value) : "memory");
    return old;
}

TS_FN u64 now_ns() {
    u64 value;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value));
    return value;
}

template <int V> struct ts_piece;
template <> struct ts_piece<16> {
    u32 x, y, z, w;
    __device__ void load(u64 at) {
        asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "l"(at) : "memory");
    }
    __device__ void store(u64 at) const {
        asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};"
                     ::"l"(at), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
    }
};
#define TS_PIECE(bytes, type, letter, suffix)                                                     \
    template <> struct ts_piece<bytes> {                                                          \
        type x;                                                                                   \
        __device__ void load(u64 at) {                                                            \
            asm volatile("ld.relaxed.sys.global." suffix " %0, [%1];"                             \
                         : "=" letter(x) : "l"(at) : "memory");                                   \
        }                                                                                         \
        __device__ void store(u64 at) const {                                                     \
            asm volatile("st.global." suffix " [%0], %1;" ::"l"(at), letter(x) : "memory");       \
        }                                                                                         \
    };
TS_PIECE(8, u64, "l", "u64")
TS_PIECE(4, u32, "r", "u32")
TS_PIECE(2, u16, "h", "u16")
TS_PIECE(1, u32, "r", "u8")

/* ---- failing ------------------------------------------------------------------------------------ */

/* The first finding stays: later launches do nothing, and the host reads the report. */
static __device__ void poison(const ts_device &d, u32 kind, u32 peer, u32 stripe, u32 sequence,
                              u64 mine, u64 theirs, u64 waited, const ts_header *header) {
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
    report->ndim = header ? header->ndim : 0u;
    for (u32 i = 0; i < TS_MAX_DIMS; i++) report->dims[i] = header ? header->dims[i] : 0u;
    fence_system();
    report->valid = 1u;
}

/* ---- the steps of one operation ------------------------------------------------------------------ */

/* Returns this launch's sequence, or 0 when the group is poisoned. */
static __device__ u32 enter(const ts_config &c, const ts_device &d, ts_shared &shared) {
    if (threadIdx.x == 0) {
        const volatile ts_state *state = (const volatile ts_state *)d.state;
        u32 poisoned = state->poison;
        shared.sequence = poisoned ? 0u : ts_next_sequence(state->sequence);
        shared.verdict = 0u;
        if (shared.sequence && blockIdx.x == 0 && blockIdx.y == 0)
            store_word(c.base[c.rank] + c.progress + TS_DOORBELL, shared.sequence);
    }
    __syncthreads();
    return shared.sequence;
}

/* Three 16-byte stores a place; the own send slot always has the header, for the host. */
static __device__ void stage_header(const ts_config &c, const ts_request &r, u32 sequence, u64 flag) {
    if (blockIdx.x || blockIdx.y) return;
    u32 part = threadIdx.x % 4u, place = threadIdx.x / 4u;
    if (part == 3u || place > (c.pull ? 0u : TS_PEERS)) return;
    u64 at = c.base[c.rank] + ts_send_slot(c, r.op, sequence);
    if (place) at = ts_target(c, place - 1u + (place - 1u >= c.rank), r.op, sequence);
    ts_piece<16> piece;
    u32 word = part * 4u;
    u32 words[4];
    for (u32 i = 0; i < 4; i++, word++) {
        u32 value = 0u;
        if (word == 0) value = (u32)flag;
        else if (word == 1) value = (u32)(flag >> 32);
        else if (word == 2) value = r.ndim;
        else if (word < 3 + TS_MAX_DIMS) value = r.dims[word - 3];
        words[i] = value;
    }
    piece.x = words[0], piece.y = words[1], piece.z = words[2], piece.w = words[3];
    piece.store(at + part * 16u);
}

/* Copies elements [first, end) of the input, V bytes each, to where peers will read them. */
template <int V>
static __device__ void stage(const ts_config &c, const ts_request &r, u32 sequence, u32 first, u32 end) {
    u32 step = gridDim.x * TS_THREADS, targets = c.pull ? 1u : TS_PEERS;
    for (u32 at = first + blockIdx.x * TS_THREADS + threadIdx.x; at < end; at += step * TS_UNROLL) {
        ts_piece<V> piece[TS_UNROLL];
#pragma unroll
        for (u32 u = 0; u < TS_UNROLL; u++)
            if (at + u * step < end) piece[u].load(r.input + (u64)(at + u * step) * V);
        for (u32 t = 0; t < targets; t++) {
            u64 slot = ts_target(c, c.pull ? c.rank : t + (t >= c.rank), r.op, sequence) + TS_LINE;
#pragma unroll
            for (u32 u = 0; u < TS_UNROLL; u++)
                if (at + u * step < end) piece[u].store(slot + (u64)(at + u * step) * V);
        }
    }
}

/* The block that completes a stripe publishes its flag to every peer. */
static __device__ void publish(const ts_config &c, const ts_device &d, u32 sequence, u64 flag) {
    u32 stripe = blockIdx.y, complete = 1u;
    __syncthreads();
    if (threadIdx.x >= 32u) return;
    if (gridDim.x > 1u) {
        if (threadIdx.x == 0) {
            u32 *staged = &((ts_state *)d.state)->staged[stripe];
            complete = add_acq_rel(staged, 1u) + 1u == gridDim.x;
            if (complete) *staged = 0u;
        }
        complete = __shfl_sync(TS_ALL, complete, 0);
        __syncwarp();
    }
    if (!complete || threadIdx.x >= TS_PEERS) return;
    u32 peer = (c.rank + 1u + threadIdx.x) % TS_WORLD;
    fence_system();
    store_flag(c.base[peer] + ts_flag_place(c, peer, c.rank, sequence, stripe), flag);
    u64 progress = c.base[c.rank] + c.progress;
    if (stripe == 0u && threadIdx.x == 0) store_word(progress + TS_POSTED, sequence);
    u32 entry = peer * TS_MAX_LANES + c.route[peer][stripe];
    store_word(progress + TS_ACKED + entry * 4u, sequence);
}

/* First warp: one lane a peer polls this block's stripe, a second one stripe 0 (the header's). */
static __device__ void wait(const ts_config &c, const ts_request &r, const ts_device &d,
                            u32 sequence, ts_shared &shared) {
    u32 lane = threadIdx.x, slot = lane % 8u, stripe = lane < 8u ? blockIdx.y : 0u;
    bool pending = slot < TS_PEERS && (lane < 8u || (lane < 16u && blockIdx.y));
    u32 peer = slot + (slot >= c.rank);
    u64 place = 0, expected = 0, seen = 0, started = 0, waited = 0;
    if (pending) {
        place = c.base[c.rank] + ts_flag_place(c, c.rank, peer, sequence, stripe);
        expected = ts_flag_pack(sequence, r.op, r.dtype, ts_units(r.bytes[peer]));
    }
    u32 bad = 0u, polls = 0u;
    for (;;) {
        if (pending) {
            seen = load_acquire(place);
            u32 found = ts_judge(seen, expected, sequence);
            pending = found == TS_PENDING;
            bad = pending ? 0u : found;
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
            if (stop && pending) bad = stop;
            if (stop) break;
        }
    }
    u32 wrong = __ballot_sync(TS_ALL, bad != 0u);
    if (wrong && lane == __ffs(wrong) - 1) {
        u64 mine = ts_flag_pack(sequence, r.op, r.dtype, ts_units(r.bytes[c.rank]));
        poison(d, bad, peer, stripe, sequence, mine, seen, waited, nullptr);
        shared.verdict = bad;
    }
}

/* First warp: a peer whose flag is right and whose shape is not is a mismatch too. */
static __device__ void check_header(const ts_config &c, const ts_request &r, const ts_device &d,
                                    u32 sequence, ts_shared &shared) {
    u32 lane = threadIdx.x;
    if (lane >= TS_PEERS) return;
    u32 peer = lane + (lane >= c.rank);
    ts_header header;
    u64 at = ts_arrived(c, peer, r.op, sequence);
    ts_piece<16> part[3];
    for (u32 i = 0; i < 3; i++) part[i].load(at + i * 16u);
    header.flag = (u64)part[0].y << 32 | part[0].x;
    header.ndim = part[0].z;
    header.dims[0] = part[0].w;
    for (u32 i = 0; i < 2; i++) {
        header.dims[1 + 4 * i] = part[1 + i].x, header.dims[2 + 4 * i] = part[1 + i].y;
        header.dims[3 + 4 * i] = part[1 + i].z;
        if (4 + 4 * i < TS_MAX_DIMS) header.dims[4 + 4 * i] = part[1 + i].w;
    }
    u64 expected = ts_flag_pack(sequence, r.op, r.dtype, ts_units(r.bytes[peer]));
    u32 bad = header.flag != expected ? TS_STALE_HEADER
                                      : (ts_same_shape(header, r, peer) ? 0u : TS_MISMATCH);
    if (bad) {
        u64 mine = ts_flag_pack(sequence, r.op, r.dtype, ts_units(r.bytes[c.rank]));
        poison(d, bad, peer, 0u, sequence, mine, header.flag, 0u, &header);
        shared.verdict = bad;
    }
}

/* The block that completes the grid moves the epoch; a poisoned launch never gets here whole. */
static __device__ void advance(const ts_config &c, const ts_device &d, u32 sequence) {
    if (threadIdx.x != 0) return;
    ts_state *state = (ts_state *)d.state;
    u32 blocks = gridDim.x * gridDim.y;
    if (blocks > 1u && add_acq_rel(&state->tail, 1u) + 1u != blocks) return;
    state->tail = 0u;
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
    static __device__ float widen(u32 half) {
        float value;
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"((u16)half));
        return value;
    }
    static __device__ u32 narrow(float value) {
        u16 half;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
        return value != value ? 0x7e00u : half;
    }
    static __device__ void add(float *sum, u32 word) {
        sum[0] = __fadd_rn(sum[0], widen(word & 0xffffu)), sum[1] = __fadd_rn(sum[1], widen(word >> 16));
    }
    static __device__ void set(float *sum, u32 word) {
        sum[0] = widen(word & 0xffffu), sum[1] = widen(word >> 16);
    }
    static __device__ u32 get(const float *sum) { return narrow(sum[0]) | narrow(sum[1]) << 16; }
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

/* Loads of the first round are on their way while the headers are read. */
template <typename T>
static __device__ void all_reduce(const ts_config &c, const ts_request &r, const ts_device &d) {
    __shared__ ts_shared shared;
    u32 sequence = enter(c, d, shared);
    if (!sequence) return;
    u32 units = ts_units(r.bytes[c.rank]);
    u32 first = ts_stripe_first(units, gridDim.y, blockIdx.y);
    u32 end = ts_stripe_first(units, gridDim.y, blockIdx.y + 1u);
    u64 flag = ts_flag_pack(sequence, r.op, r.dtype, units);
    stage_header(c, r, sequence, flag);
    stage<16>(c, r, sequence, first, end);
    publish(c, d, sequence, flag);
    if (threadIdx.x < 32u) wait(c, r, d, sequence, shared);
    __syncthreads();
    if (shared.verdict) return;
    u64 from[TS_WORLD];
#pragma unroll
    for (u32 rank = 0; rank < TS_WORLD; rank++)
        from[rank] = rank == c.rank ? r.input : ts_arrived(c, rank, r.op, sequence) + TS_LINE;
    u32 step = gridDim.x * TS_THREADS, at = first + blockIdx.x * TS_THREADS + threadIdx.x;
    bool checked = false;
    do {
        ts_piece<16> piece[TS_UNROLL][TS_WORLD];
#pragma unroll
        for (u32 u = 0; u < TS_UNROLL; u++)
#pragma unroll
            for (u32 rank = 0; rank < TS_WORLD; rank++)
                if (at + u * step < end) piece[u][rank].load(from[rank] + (u64)(at + u * step) * 16u);
        if (!checked) {
            check_header(c, r, d, sequence, shared);
            __syncthreads();
            if (shared.verdict) return;
            checked = true;
        }
#pragma unroll
        for (u32 u = 0; u < TS_UNROLL; u++)
            if (at + u * step < end)
                sum_pieces<T>(piece[u]).store(r.output + (u64)(at + u * step) * 16u);
        at += step * TS_UNROLL;
    } while (at < end);
    advance(c, d, sequence);
}

/* V: bytes an access, dividing every row, offset and address. */
template <int V>
static __device__ void all_gather(const ts_config &c, const ts_request &r, const ts_device &d) {
    __shared__ ts_shared shared;
    u32 sequence = enter(c, d, shared);
    if (!sequence) return;
    u64 from[TS_WORLD];
    u32 first[TS_WORLD], end[TS_WORLD], most = 0u;
#pragma unroll
    for (u32 rank = 0; rank < TS_WORLD; rank++) {
        u32 units = ts_units(r.bytes[rank]), bytes = (u32)r.bytes[rank];
        u32 low = ts_stripe_first(units, gridDim.y, blockIdx.y) * TS_UNIT;
        u32 high = ts_stripe_first(units, gridDim.y, blockIdx.y + 1u) * TS_UNIT;
        first[rank] = (low < bytes ? low : bytes) / V;
        end[rank] = (high < bytes ? high : bytes) / V;
        if (end[rank] - first[rank] > most) most = end[rank] - first[rank];
        from[rank] = rank == c.rank ? r.input : ts_arrived(c, rank, r.op, sequence) + TS_LINE;
    }
    u64 flag = ts_flag_pack(sequence, r.op, r.dtype, ts_units(r.bytes[c.rank]));
    stage_header(c, r, sequence, flag);
#pragma unroll
    for (u32 rank = 0; rank < TS_WORLD; rank++)
        if (rank == c.rank) stage<V>(c, r, sequence, first[rank], end[rank]);
    publish(c, d, sequence, flag);
    if (threadIdx.x < 32u) wait(c, r, d, sequence, shared);
    __syncthreads();
    if (shared.verdict) return;
    u32 at = blockIdx.x * TS_THREADS + threadIdx.x;
    bool checked = false;
    do {
        ts_piece<V> piece[TS_WORLD];
#pragma unroll
        for (u32 rank = 0; rank < TS_WORLD; rank++)
            if (at < end[rank] - first[rank]) piece[rank].load(from[rank] + (u64)(first[rank] + at) * V);
        if (!checked) {
            check_header(c, r, d, sequence, shared);
            __syncthreads();
            if (shared.verdict) return;
            checked = true;
        }
#pragma unroll
        for (u32 rank = 0; rank < TS_WORLD; rank++)
            if (at < end[rank] - first[rank])
                piece[rank].store(r.output + ts_gathered(r, rank, (first[rank] + at) * V));
        at += gridDim.x * TS_THREADS;
    } while (at < most);
    advance(c, d, sequence);
}

#define TS_KERNEL(name, body)                                                                     \
    extern "C" __global__ void __launch_bounds__(TS_THREADS)                                      \
        name(const __grid_constant__ ts_config c, const __grid_constant__ ts_request r,           \
             const __grid_constant__ ts_device d) {                                               \
        body(c, r, d);                                                                            \
    }

TS_KERNEL(ts_all_reduce_bf16, all_reduce<ts_bf16>)
TS_KERNEL(ts_all_reduce_fp16, all_reduce<ts_fp16>)
TS_KERNEL(ts_all_reduce_fp32, all_reduce<ts_fp32>)
TS_KERNEL(ts_all_gather_16, all_gather<16>)
TS_KERNEL(ts_all_gather_8, all_gather<8>)
TS_KERNEL(ts_all_gather_4, all_gather<4>)
TS_KERNEL(ts_all_gather_2, all_gather<2>)
TS_KERNEL(ts_all_gather_1, all_gather<1>)

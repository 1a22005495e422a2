/* Enough of a GPU to run the kernels on one CPU thread: every CUDA thread is a fiber.
 *
 * Fibers are switched at barriers, warp operations and polls, in a random order from a seed. Memory
 * is sequentially consistent, so this shows what the kernels compute and where they put it, whom
 * they wait for and when they give up; it shows nothing of the memory order.
 */
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <ucontext.h>
#include <vector>

#define __CUDACC__
#define __device__
#define __forceinline__ inline
#define __global__
#define __launch_bounds__(x)
#define __grid_constant__

struct three {
    unsigned x, y, z;
};

struct Barrier {
    unsigned size, arrived = 0, turn = 0;
};

struct Warp {
    unsigned long long slot[32];
    Barrier barrier{32};
};

struct Block {
    three index, grid;
    Barrier barrier;
    std::vector<Warp> warps;
    std::map<const void *, std::vector<char>> shared;
};

struct Fiber {
    ucontext_t context;
    std::vector<char> stack;
    three thread;
    Block *block;
    bool over = false;
    const Barrier *waits_at = nullptr;
    unsigned turn = 0;

    bool ready() const { return !over && !(waits_at && waits_at->turn == turn); }
};

static Fiber *current;
static ucontext_t scheduler;
#define threadIdx (current->thread)
#define blockIdx (current->block->index)
#define gridDim (current->block->grid)

static void give_way() { swapcontext(&current->context, &scheduler); }

static void pass(Barrier &barrier) {
    current->waits_at = &barrier, current->turn = barrier.turn;
    if (++barrier.arrived == barrier.size) barrier.arrived = 0, barrier.turn++;
    else give_way();
    current->waits_at = nullptr;
}

static Warp &warp_of() { return current->block->warps[threadIdx.x / 32]; }
static void __syncthreads() { pass(current->block->barrier); }
static void __syncwarp() { pass(warp_of().barrier); }

/* Offers a value to the warp, takes one from lanes `from` to `end`; all lanes take part. */
template <typename T, typename F> static void exchange(T value, unsigned from, unsigned end, F take) {
    Warp &warp = warp_of();
    memcpy(&warp.slot[threadIdx.x % 32], &value, sizeof value);
    __syncwarp();
    for (unsigned lane = from; lane < end; lane++) {
        T found;
        memcpy(&found, &warp.slot[lane], sizeof found);
        take(lane, found);
    }
    __syncwarp();
}

template <typename T> static T exchanged(T value, unsigned from) {
    exchange(value, from % 32, from % 32 + 1, [&](unsigned, T found) { value = found; });
    return value;
}

template <typename T> static T __shfl_sync(unsigned, T value, unsigned from) { return exchanged(value, from); }
static unsigned __ballot_sync(unsigned, bool truth) {
    unsigned found = 0;
    exchange((unsigned)truth, 0, 32, [&](unsigned lane, unsigned one) { found |= one << lane; });
    return found;
}
static bool __any_sync(unsigned mask, bool truth) { return __ballot_sync(mask, truth) != 0; }
static int __ffs(unsigned value) { return __builtin_ffs((int)value); }
static unsigned atomicCAS(unsigned *at, unsigned old, unsigned value) {
    unsigned seen = *at;
    if (seen == old) *at = value;
    return seen;
}

static float __fadd_rn(float a, float b) { return a + b; }
static float __uint_as_float(unsigned bits) {
    float value;
    memcpy(&value, &bits, 4);
    return value;
}
static unsigned __float_as_uint(float value) {
    unsigned bits;
    memcpy(&bits, &value, 4);
    return bits;
}

/* A block's shared memory, filled with something no kernel may rely on. */
template <typename T> static T &shared_memory() {
    static char key;
    auto &bytes = current->block->shared[&key];
    if (bytes.empty()) bytes.assign(sizeof(T), (char)0xa5);
    return *(T *)bytes.data();
}

/* One all-reduce of bf16 over b12x's proxy, as its GPU kernel would do it, by a CPU thread: stage,
 * ring the doorbell, wait for every flag, add in rank order. Offsets are b12x's own layout. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

typedef struct {
    uint64_t region, recv, flag, send, control, stride, slots, slot_bytes;
    uint32_t world, rank, rails, spins;
} rival;

static float wide(uint16_t half) {
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

static uint16_t narrow(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static int arrived(const rival *r, uint32_t source, uint32_t slot, uint32_t rail, uint32_t sequence) {
    uint64_t line = (source * r->slots + slot) * r->rails + rail;
    uint32_t *flag = (uint32_t *)(uintptr_t)(r->region + r->flag + line * r->stride);
    return __atomic_load_n(flag, __ATOMIC_ACQUIRE) == sequence;
}

/* Returns 1; 0 when a flag did not come within `limit_ns`. */
int reduce(const rival *r, uint32_t sequence, const uint16_t *in, uint16_t *out, uint32_t count,
           uint64_t limit_ns) {
    uint32_t slot = sequence & 1u, bytes = count * 2;
    uint32_t *control = (uint32_t *)(uintptr_t)(r->region + r->control);
    memcpy((void *)(uintptr_t)(r->region + r->send + slot * r->slot_bytes), in, bytes);
    control[4 + slot] = bytes;
    __atomic_store_n(control, sequence, __ATOMIC_RELEASE);
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (uint32_t source = 0; source < r->world; source++)
        for (uint32_t rail = 0; source != r->rank && rail < r->rails; rail++)
            for (uint32_t polls = 0; !arrived(r, source, slot, rail, sequence); polls++) {
                if (polls < r->spins) continue;
                sched_yield();
                clock_gettime(CLOCK_MONOTONIC, &now);
                if ((uint64_t)(now.tv_sec - start.tv_sec) * 1000000000u > limit_ns) return 0;
            }
    const uint16_t *from[8];
    for (uint32_t source = 0; source < r->world; source++)
        from[source] = source == r->rank
                           ? in
                           : (const uint16_t *)(uintptr_t)(r->region + r->recv +
                                                           (source * r->slots + slot) * r->slot_bytes);
    for (uint32_t i = 0; i < count; i++) {
        float sum = 0;
        for (uint32_t source = 0; source < r->world; source++) sum += wide(from[source][i]);
        out[i] = narrow(sum);
    }
    return 1;
}

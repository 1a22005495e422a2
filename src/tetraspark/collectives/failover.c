/* Failover of one pair of ranks, as one end keeps it: which lanes carry, what was sent over which,
 * and what both ends tell each other of a lane that failed or comes back. It touches no device;
 * whoever holds the queue pairs asks `tf_wanted` what to do, does it, and says so.
 *
 * A lane has generations, one a connection. Within one its end goes
 *
 *     UP -> DOWN                               it failed here, or the peer says so
 *     DOWN -> (next generation) OFFERED        there is a fresh queue pair
 *     OFFERED -> JOINED -> UP                  it is connected; it was proven
 *     OFFERED, JOINED -> DOWN                  that failed
 *
 * DOWN is said only after the own queue pair was reset: from then on nothing that is still under
 * way on the lane can reach this end's memory. An end that is DOWN asks about every stripe of the
 * last two sequences that it gave to the lane; the peer answers once it is DOWN too, from the flags
 * in its memory, which the lane can no longer change. Only what the peer does not have is sent
 * again, over another lane. So no stripe is under way twice, and the rule that makes two slots
 * enough (sequence k+2 begins when every peer has all of k) holds over a failover as it does
 * without one. Stripes stay cut as they were; only the lane that carries them changes, which is
 * the sender's affair alone.
 *
 * What is said is a state, not an event: it is repeated over every lane that carries until the
 * peer's word shows that it was heard, so the loss of any message, or of the lane that took it,
 * changes nothing. A message is trusted if its checksum fits and it is newer than the last.
 */
#define _GNU_SOURCE /* for the file that follows this one in the library of the lanes */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define TF_LANES 4u
#define TF_NONE 0xffffffffu
#define TF_ASKED 8u /* two sequences of at most four stripes */

enum { TF_UP, TF_DOWN, TF_OFFERED, TF_JOINED };
enum { TF_NOTHING, TF_STOP, TF_OFFER, TF_JOIN, TF_PROVE };

/* Mirror of the protocol's structure; its size is compared when the library is loaded. */
typedef struct {
    uint32_t peer, lane, stripe, sequence;
    uint64_t source, target, bytes, flag_target, flag;
} ts_write;

/* How to reach a fresh queue pair. */
typedef struct {
    uint32_t qp, sequence_number, mtu, rkey;
    uint64_t base;
    uint8_t gid[16];
} tf_offer;

/* What an end says of one lane. */
typedef struct {
    uint32_t generation, phase;
    uint32_t asked, answered; /* questions; whether the peer's are answered, in `arrived` */
    uint32_t arrived, settled; /* a bit a question; whether the peer's answer was taken */
    struct { uint64_t place, flag; } question[TF_ASKED];
    tf_offer offer;
} tf_line;

typedef struct {
    uint64_t check, number;
    uint32_t calm, reserved; /* this end waits for nothing */
    tf_line lane[TF_LANES];
} tf_message;

typedef struct {
    ts_write write;
    uint32_t lane, lost, arrived; /* the lane that took it; to be sent again; the peer has it */
    uint32_t reserved;
} tf_sent_write;

typedef struct {
    tf_line own[TF_LANES], heard[TF_LANES];
    uint32_t failed[TF_LANES]; /* the lane failed here and is not yet stopped */
    tf_sent_write sent[2][TF_LANES]; /* by parity of the sequence and stripe */
    uint64_t said, last_heard;
    uint32_t lanes, answer_due;
    uint64_t resent[TF_LANES]; /* writes that were lost on each lane */
} tf_pair;

/* ---- which lane carries ------------------------------------------------------------------------ */

/* `up`: one bit for each lane that is connected; the others begin DOWN, with nothing to settle. */
void tf_open(tf_pair *pair, uint32_t lanes, uint32_t up) {
    memset(pair, 0, sizeof *pair);
    pair->lanes = lanes;
    for (uint32_t lane = 0; lane < lanes; lane++) {
        tf_line down = {.phase = TF_DOWN, .answered = 1, .settled = 1};
        if (!(up & 1u << lane)) pair->own[lane] = pair->heard[lane] = down;
    }
}

int tf_carries(const tf_pair *pair, uint32_t lane) {
    return pair->own[lane].phase == TF_UP && !pair->failed[lane];
}

/* Returns the lane that takes the stripes of `lane`: itself, another, or TF_NONE. */
uint32_t tf_carrier(const tf_pair *pair, uint32_t lane) {
    uint32_t found[TF_LANES], count = 0;
    if (tf_carries(pair, lane)) return lane;
    for (uint32_t i = 0; i < pair->lanes; i++)
        if (tf_carries(pair, i)) found[count++] = i;
    return count ? found[lane % count] : TF_NONE;
}

/* Remembers what was given to a lane. TF_NONE: to none, so it is owed. */
void tf_gave(tf_pair *pair, const ts_write *write, uint32_t lane) {
    pair->sent[write->sequence & 1u][write->stripe] =
        (tf_sent_write){.write = *write, .lane = lane, .lost = lane == TF_NONE};
}

/* Copies the next write that must be sent again to `out`; 0 when there is none, or no lane for it.
 * It stays owed until tf_gave tells which lane took it. */
int tf_owed(const tf_pair *pair, ts_write *out) {
    for (uint32_t i = 0; i < 2 * TF_LANES; i++) {
        const tf_sent_write *one = &pair->sent[i / TF_LANES][i % TF_LANES];
        if (!one->lost || tf_carrier(pair, one->write.lane) == TF_NONE) continue;
        *out = one->write;
        return 1;
    }
    return 0;
}

/* Copies a write that the peer says it has, though its lane never acknowledged it; once each. */
int tf_arrived(tf_pair *pair, ts_write *out) {
    for (uint32_t i = 0; i < 2 * TF_LANES; i++) {
        tf_sent_write *one = &pair->sent[i / TF_LANES][i % TF_LANES];
        if (!one->arrived) continue;
        one->arrived = 0;
        *out = one->write;
        return 1;
    }
    return 0;
}

/* ---- what this end did ------------------------------------------------------------------------- */

static void change(tf_pair *pair, uint32_t lane, uint32_t generation, uint32_t phase) {
    pair->own[lane] = (tf_line){.generation = generation, .phase = phase};
}

/* The lane no longer works: tf_wanted asks for TF_STOP. */
void tf_fail(tf_pair *pair, uint32_t lane) {
    if (pair->own[lane].phase != TF_DOWN) pair->failed[lane] = 1;
}

/* The own queue pair of the lane was reset: nothing arrives over it any more. */
void tf_stopped(tf_pair *pair, uint32_t lane) {
    tf_line *own = &pair->own[lane];
    change(pair, lane, own->generation, TF_DOWN);
    pair->failed[lane] = 0;
    for (uint32_t i = 0; i < 2 * TF_LANES; i++) {
        const tf_sent_write *one = &pair->sent[i / TF_LANES][i % TF_LANES];
        if (!one->write.flag || one->lane != lane) continue;
        own->question[own->asked].place = one->write.flag_target;
        own->question[own->asked++].flag = one->write.flag;
    }
}

/* A fresh queue pair waits for its other end. */
void tf_offered(tf_pair *pair, uint32_t lane, const tf_offer *offer) {
    change(pair, lane, pair->own[lane].generation + 1, TF_OFFERED);
    pair->own[lane].offer = *offer;
}

/* It is connected: what the peer sends over it arrives. */
void tf_joined(tf_pair *pair, uint32_t lane) { pair->own[lane].phase = TF_JOINED; }

/* A write over it was acknowledged: it carries. */
void tf_proven(tf_pair *pair, uint32_t lane) { pair->own[lane].phase = TF_UP; }

/* ---- what to do -------------------------------------------------------------------------------- */

static int agreed(const tf_pair *pair, uint32_t lane) {
    const tf_line *own = &pair->own[lane], *heard = &pair->heard[lane];
    if (own->generation != heard->generation || own->phase != heard->phase) return 0;
    return own->phase == TF_UP || (own->phase == TF_DOWN && own->settled && heard->settled);
}

/* Returns what the holder of the queue pairs must do for a lane now. */
uint32_t tf_wanted(const tf_pair *pair, uint32_t lane) {
    const tf_line *own = &pair->own[lane], *heard = &pair->heard[lane];
    if (own->phase == TF_DOWN) {
        int ahead = heard->generation == own->generation + 1;
        return ahead || agreed(pair, lane) ? TF_OFFER : TF_NOTHING;
    }
    if (pair->failed[lane]) return TF_STOP;
    if (heard->generation != own->generation) return TF_NOTHING;
    if (heard->phase == TF_DOWN) return TF_STOP;
    if (own->phase == TF_OFFERED) return TF_JOIN;
    return own->phase == TF_JOINED && heard->phase != TF_OFFERED ? TF_PROVE : TF_NOTHING;
}

/* Where the peer waits, once TF_JOIN is wanted. */
const tf_offer *tf_peer(const tf_pair *pair, uint32_t lane) { return &pair->heard[lane].offer; }

/* Whether this end waits for no word of the peer. */
int tf_calm(const tf_pair *pair) {
    for (uint32_t lane = 0; lane < pair->lanes; lane++)
        if (pair->failed[lane] || !agreed(pair, lane)) return 0;
    return 1;
}

/* Whether every stripe of the last two sequences has a lane that will deliver it. */
int tf_settled(const tf_pair *pair) {
    ts_write unused;
    for (uint32_t lane = 0; lane < pair->lanes; lane++)
        if (pair->failed[lane] || (pair->own[lane].phase == TF_DOWN && !pair->own[lane].settled)) return 0;
    return !tf_owed(pair, &unused);
}

/* ---- what the ends say ------------------------------------------------------------------------- */

static uint64_t checksum(const tf_message *message) {
    const uint64_t *word = (const uint64_t *)message;
    uint64_t hash = 14695981039346656037u;
    for (uint32_t i = 1; i < sizeof *message / 8; i++) {
        hash = (hash ^ word[i]) * 1099511628211u;
        hash ^= hash >> 32;
    }
    return hash;
}

/* Fills the message that is due; 0 when none is. */
int tf_say(tf_pair *pair, tf_message *out) {
    int calm = tf_calm(pair);
    if (calm && !pair->answer_due) return 0;
    pair->answer_due = 0;
    memset(out, 0, sizeof *out);
    out->number = ++pair->said;
    out->calm = (uint32_t)calm;
    memcpy(out->lane, pair->own, sizeof out->lane);
    out->check = checksum(out);
    return 1;
}

/* Answers the peer's questions from this end's memory; the lane can no longer change it. */
static void answer(tf_line *own, const tf_line *heard, const uint8_t *base, uint64_t bytes) {
    for (uint32_t i = 0; i < heard->asked && i < TF_ASKED; i++) {
        uint64_t place = heard->question[i].place;
        if (place % 8 || place + 8 > bytes) continue;
        uint64_t flag = __atomic_load_n((const uint64_t *)(base + place), __ATOMIC_ACQUIRE);
        if (flag == heard->question[i].flag) own->arrived |= 1u << i;
    }
    own->answered = 1;
}

/* What the peer does not have is owed, unless a newer sequence has taken its place: that one began
 * when the peer had it. */
static void settle(tf_pair *pair, uint32_t lane) {
    tf_line *own = &pair->own[lane];
    for (uint32_t i = 0; i < own->asked; i++) {
        int arrived = pair->heard[lane].arrived >> i & 1u;
        for (uint32_t k = 0; k < 2 * TF_LANES; k++) {
            tf_sent_write *one = &pair->sent[k / TF_LANES][k % TF_LANES];
            int same = one->write.flag == own->question[i].flag &&
                       one->write.flag_target == own->question[i].place;
            if (!same || one->lane != lane || one->lost) continue;
            one->arrived = (uint32_t)arrived;
            one->lost = !arrived;
            pair->resent[lane] += one->lost;
        }
    }
    own->settled = 1;
}

static void take(tf_pair *pair, uint32_t lane, const uint8_t *base, uint64_t bytes) {
    tf_line *own = &pair->own[lane];
    const tf_line *heard = &pair->heard[lane];
    if (own->phase != TF_DOWN || heard->phase != TF_DOWN) return;
    if (own->generation != heard->generation) return;
    if (!own->answered) answer(own, heard, base, bytes);
    if (heard->answered && !own->settled) settle(pair, lane);
}

/* Takes the peer's state again after this end changed its own. */
void tf_think(tf_pair *pair, const uint8_t *base, uint64_t bytes) {
    for (uint32_t lane = 0; lane < pair->lanes; lane++) take(pair, lane, base, bytes);
}

/* Hears a message, which may be torn, old or nothing yet; 1 when it was news. `base`, `bytes`: this
 * end's region, in which the flags are. */
int tf_hear(tf_pair *pair, const tf_message *found, const uint8_t *base, uint64_t bytes) {
    tf_message message;
    if (found->number <= pair->last_heard) return 0;
    memcpy(&message, found, sizeof message);
    if (message.number <= pair->last_heard || message.check != checksum(&message)) return 0;
    pair->last_heard = message.number;
    if (!message.calm) pair->answer_due = 1;
    for (uint32_t lane = 0; lane < pair->lanes; lane++)
        if (message.lane[lane].generation >= pair->heard[lane].generation)
            pair->heard[lane] = message.lane[lane];
    tf_think(pair, base, bytes);
    return 1;
}

/* Numbers that must equal the loader's own before anything else is called. */
uint32_t tf_abi(uint32_t *out, uint32_t capacity) {
    const uint32_t numbers[] = {
        TF_LANES, TF_ASKED, sizeof(ts_write), sizeof(tf_offer), sizeof(tf_line), sizeof(tf_message),
        sizeof(tf_pair), offsetof(tf_pair, failed), offsetof(tf_pair, resent),
    };
    uint32_t count = sizeof numbers / sizeof *numbers;
    for (uint32_t i = 0; i < count && i < capacity; i++) out[i] = numbers[i];
    return count;
}

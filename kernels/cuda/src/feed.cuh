// feed.cuh: brings a warp the data of its tiles in the order in which it will ask, some stages ahead.
//
// With STAGES > 1 asynchronous copies run ahead into shared memory, which costs no registers. Every lane copies just
// what it will read itself, into slots of its own: no barrier is needed, no banks conflict, and warps drift apart freely.
// With STAGES = 1 a request is answered from memory directly.
#pragma once
#include "lane_share.cuh"

constexpr int SHARES = COLUMNS / HALVES;  // blocks of which a lane holds a part
static_assert(COLUMNS % HALVES == 0, "a lane holds whole blocks");

DEVICE int piece_of(const Work &k, u32 block) {
  int piece = 0;
#pragma unroll
  for (int i = 1; i < PIECES; i++) piece += block >= i * k.c;
  return piece;
}

DEVICE const u8 *input_block(const Work &k, u32 stripe, u32 block) {
#if TABLE
  return (const u8 *)__ldg(k.in_table + (u64)stripe * k.c + block);
#else
  return k.in + (i64)stripe * k.in_stripe + (i64)block * k.in_block;
#endif
}
DEVICE u8 *output_block(const Work &k, u32 stripe, u32 block) {
#if TABLE
  return (u8 *)__ldg(k.out_table + (u64)stripe * k.r + block);
#else
  return k.out + (i64)stripe * k.out_stripe + (i64)block * k.out_block;
#endif
}

// A request: slice `slice` of the inputs of a tile. Sliced kernels ask for all slices once for every `span` of groups.
struct Cursor {
  Walk walk;
  u32 turn, slice;

  DEVICE explicit Cursor(const Work &k) : walk(k), turn(0), slice(0) {}
  DEVICE void next(const Work &k, u32 slices, u32 turns) {
#if SLICED
    if (++slice < slices) return;
    slice = 0;
    if (++turn < turns) return;
    turn = 0;
#endif
    walk.next(k);
  }
};

struct Feed {
  Cursor ahead;
  const u32 slices, turns;
  int slot;

  // Where the lane's part of its i-th block of a request is. A lane that has no block left reads the last one again:
  // the addresses are its neighbour's, so that it costs no traffic, and the matrix is zero there.
  static DEVICE const u8 *part(const Work &k, const Cursor &at, int i, i64 offset, i64 *n) {
    const u32 all = k.c * PIECES, wanted = (at.slice * SHARES + i) * 4 + (threadIdx.x & 3);
    const u32 block = wanted < all ? wanted : all - 1;
    const int piece = piece_of(k, block);
    *n = share_rest(k, piece, offset);
    return input_block(k, at.walk.stripe, block - piece * k.c) + piece * k.piece + offset;
  }
  static DEVICE void load(const Work &k, const Cursor &at, u32 (*raw)[RAW]) {
    const i64 offset = share_offset(at.walk.tile, (threadIdx.x & 31) >> 2);
    const bool whole = at.walk.tile < k.whole_tiles;
#pragma unroll
    for (int i = 0; i < SHARES; i++) {
      i64 n;
      const u8 *p = part(k, at, i, offset, &n);
      load_share(raw[i], p, n, whole);
    }
  }

#if STAGES > 1
#if PACKETS
  typedef u32 Slot;
#else
  typedef uint4 Slot;
#endif
  static constexpr int SLOTS = RAW * 4 / sizeof(Slot);  // slots of one block

  static DEVICE Slot *place(int stage, int i, int q) {
    return (Slot *)shared_memory() + ((stage * SHARES + i) * SLOTS + q) * THREADS + threadIdx.x;
  }
  DEVICE void request(const Work &k, int stage) {
    if (ahead.walk.more(k)) {
      const i64 offset = share_offset(ahead.walk.tile, (threadIdx.x & 31) >> 2);
      const bool whole = ahead.walk.tile < k.whole_tiles;
#pragma unroll
      for (int i = 0; i < SHARES; i++) {
        i64 n;
        const u8 *p = part(k, ahead, i, offset, &n);
        if (whole && !UNALIGNED) {
#pragma unroll
          for (int q = 0; q < SLOTS; q++) copy_async(place(stage, i, q), p + q * (PACKETS ? PACKET_BYTES : 128));
        } else {
          u32 raw[RAW];
          load_share(raw, p, n, false);
#pragma unroll
          for (int q = 0; q < SLOTS; q++)
#if PACKETS
            *place(stage, i, q) = raw[q];
#else
            *place(stage, i, q) = make_uint4(raw[4 * q], raw[4 * q + 1], raw[4 * q + 2], raw[4 * q + 3]);
#endif
        }
      }
      ahead.next(k, slices, turns);
    }
    commit_copies();  // an empty group at the end of the way keeps the count of groups right
  }
  DEVICE Feed(const Work &k, u32 slices, u32 turns) : ahead(k), slices(slices), turns(turns), slot(0) {
#pragma unroll 1
    for (int stage = 0; stage < STAGES - 1; stage++) request(k, stage);
  }
  DEVICE void take(const Work &k, const Cursor &, u32 (*raw)[RAW]) {
    request(k, slot == 0 ? STAGES - 1 : slot - 1);
    wait_copies<STAGES - 1>();
#pragma unroll
    for (int i = 0; i < SHARES; i++)
#pragma unroll
      for (int q = 0; q < SLOTS; q++) {
#if PACKETS
        raw[i][q] = *place(slot, i, q);
#else
        const uint4 v = *place(slot, i, q);
#pragma unroll
        for (int j = 0; j < 4; j++) raw[i][4 * q + j] = part_of(v, j);
#endif
      }
    slot = slot == STAGES - 1 ? 0 : slot + 1;
  }
#else
  DEVICE Feed(const Work &k, u32 slices, u32 turns) : ahead(k), slices(slices), turns(turns), slot(0) {}
  DEVICE void take(const Work &k, const Cursor &at, u32 (*raw)[RAW]) { load(k, at, raw); }
#endif
};

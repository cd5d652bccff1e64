// planes.cuh: bit planes of blocks as the lanes of an XOR kernel load and store them, in either layout.
//
// A Word is VECTOR words of a bit plane side by side; XOR of Words is all that the programs do. No PTX is needed here.
//
// UNALIGNED says that addresses may be anything; without it they are multiples of a load's width. VECTOR is 1 with it.
//
//   packets  a lane owns 4 · VECTOR bytes of each of the PLANES packets of one strip; a tile is 32 such units.
//   words    a lane owns PLANES · 4 bytes of a tile, 16 at a time, so that a load instruction takes 512 contiguous bytes
//            of a block; an 8 x 8 bit transpose makes planes of them. VECTOR is 1; with w = 16 low and high bytes are
//            transposed apart; with w = 4 the planes of low and high nibbles follow each other.
#pragma once
#include "memory.cuh"
#include "transpose.cuh"
#include "work.cuh"

struct Word {
  u32 part[VECTOR];
};
DEVICE Word operator^(const Word &a, const Word &b) {
  Word r;
#pragma unroll
  for (int v = 0; v < VECTOR; v++) r.part[v] = a.part[v] ^ b.part[v];
  return r;
}
DEVICE Word xor3(const Word &a, const Word &b, const Word &c) {
  Word r;
#pragma unroll
  for (int v = 0; v < VECTOR; v++) r.part[v] = xor3(a.part[v], b.part[v], c.part[v]);
  return r;
}
DEVICE Word zero_word() {
  Word r;
#pragma unroll
  for (int v = 0; v < VECTOR; v++) r.part[v] = 0;
  return r;
}

DEVICE Word load_vector(const u8 *p) {
  Word r;
#if VECTOR == 4
  const uint4 q = load_once<uint4>(p);
  r.part[0] = q.x; r.part[1] = q.y; r.part[2] = q.z; r.part[3] = q.w;
#elif VECTOR == 2
  const uint2 q = load_once<uint2>(p);
  r.part[0] = q.x; r.part[1] = q.y;
#else
  r.part[0] = load_once<u32>(p);
#endif
  return r;
}
DEVICE void store_vector(u8 *p, const Word &a) {
#if VECTOR == 4
  store_once<uint4>(p, make_uint4(a.part[0], a.part[1], a.part[2], a.part[3]));
#elif VECTOR == 2
  uint2 q;
  q.x = a.part[0]; q.y = a.part[1];
  store_once<uint2>(p, q);
#else
  store_once<u32>(p, a.part[0]);
#endif
}

// What a lane does of one tile of one stripe.
struct Lane {
  const Work &k;
  const u32 stripe;
  i64 offset;  // of its part, from the start of a block
  bool whole;  // all of a tile of `words` exists
  bool live;   // it has a part at all

  DEVICE Lane(const Work &k, const Walk &walk) : k(k), stripe(walk.stripe), whole(walk.tile < k.whole_tiles) {
    const u32 lane = threadIdx.x & 31;
#if PACKETS
    constexpr u32 UNITS = PACKET_BYTES / (4 * VECTOR);
    const u32 unit = walk.tile * 32 + lane, strip = unit / UNITS;
    offset = (i64)strip * (PLANES * PACKET_BYTES) + (unit - strip * UNITS) * (4 * VECTOR);
#else
    offset = (i64)walk.tile * (128 * PLANES) + 16 * lane;
#endif
    live = whole || offset < k.length;
  }

  DEVICE void load(Word *plane, u32 block) const {
#if TABLE
    const u8 *p = (const u8 *)__ldg(k.in_table + (u64)stripe * k.c + block) + offset;
#else
    const u8 *p = k.in + (i64)stripe * k.in_stripe + (i64)block * k.in_block + offset;
#endif
#if PACKETS
#pragma unroll
    for (int b = 0; b < PLANES; b++)
      if (UNALIGNED) plane[b].part[0] = load_word(p + b * PACKET_BYTES);
      else plane[b] = load_vector(p + b * PACKET_BYTES);
#else
    u32 raw[PLANES];
#pragma unroll
    for (int i = 0; i < PLANES / 4; i++) {
      const uint4 q = whole && !UNALIGNED ? load_once<uint4>(p + 512 * i) : load_edge(p + 512 * i, k.length - offset - 512 * i);
      raw[4 * i] = q.x; raw[4 * i + 1] = q.y; raw[4 * i + 2] = q.z; raw[4 * i + 3] = q.w;
    }
    u32 bits[PLANES];
#if PLANES == 16
    split_bytes<8>(bits, bits + 8, raw);
    transpose_bits(bits + 8);
#else
#pragma unroll
    for (int b = 0; b < 8; b++) bits[b] = raw[b];
#endif
    transpose_bits(bits);
#pragma unroll
    for (int b = 0; b < PLANES; b++) plane[b].part[0] = bits[b];
#endif
  }

  DEVICE void store(const Word *plane, u32 block) const {
#if TABLE
    u8 *p = (u8 *)__ldg(k.out_table + (u64)stripe * k.r + block) + offset;
#else
    u8 *p = k.out + (i64)stripe * k.out_stripe + (i64)block * k.out_block + offset;
#endif
#if PACKETS
#pragma unroll
    for (int b = 0; b < PLANES; b++)
      if (UNALIGNED) store_word(p + b * PACKET_BYTES, plane[b].part[0]);
      else store_vector(p + b * PACKET_BYTES, plane[b]);
#else
    u32 bits[PLANES], raw[PLANES];
#pragma unroll
    for (int b = 0; b < PLANES; b++) bits[b] = plane[b].part[0];
    transpose_bits(bits);
#if PLANES == 16
    transpose_bits(bits + 8);
    join_bytes<8>(raw, bits, bits + 8);
#else
#pragma unroll
    for (int b = 0; b < 8; b++) raw[b] = bits[b];
#endif
#pragma unroll
    for (int i = 0; i < PLANES / 4; i++) {
      const uint4 q = make_uint4(raw[4 * i], raw[4 * i + 1], raw[4 * i + 2], raw[4 * i + 3]);
      if (whole && !UNALIGNED) store_once<uint4>(p + 512 * i, q);
      else store_edge(p + 512 * i, k.length - offset - 512 * i, q);
    }
#endif
  }
};

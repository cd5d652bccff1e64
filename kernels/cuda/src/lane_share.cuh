// lane_share.cuh: the part of a tile that one lane of a matrix-product warp loads and stores, in either layout.
//
// A warp's lane is 4g + t, as in the MMA operand layouts. Lane (g, t) loads its part of blocks t, t + 4, t + 8, ... and
// stores its part of output block t of each group of four. A part is POSITIONS words of each byte column:
//
//   words    16 contiguous bytes at 16g of a tile of 128; eight lanes g take 128 contiguous bytes of each of four blocks.
//            With w = 16, 16 more bytes from 128 bytes on; the low bytes are one column and the high bytes another.
//   packets  four bytes of each of eight packets, transposed in registers to 32 symbols; a tile is eight such units,
//            32 bytes of each packet. With w = 16 packets 8..15 are the second column. With w = 4 two strips are taken
//            for one: eight packets, symbols of the first strip in the low nibbles.
//
// So a byte column of either layout is a word of four positions, POSITIONS times, and the product knows no layout.
#pragma once
#include "memory.cuh"
#include "transpose.cuh"
#include "work.cuh"

constexpr int POSITIONS = PACKETS ? 8 : 4;        // words of a byte column that a lane holds
constexpr int RAW = POSITIONS * HALVES;           // words of a block that a lane loads
constexpr int WINDOW = 8 * HALVES * PACKET_BYTES;  // bytes of a block that hold whole symbols for eight bit planes a half
constexpr int UNITS = PACKET_BYTES / 4;           // lane parts side by side in a packet

// Where a lane's part of a tile starts, from the start of a piece.
DEVICE i64 share_offset(u32 tile, int g) {
#if PACKETS
  const u32 unit = tile * 8 + g, window = unit / UNITS;
  return (i64)window * WINDOW + (unit - window * UNITS) * 4;
#else
  return (i64)tile * (128 * HALVES) + 16 * g;
#endif
}

// Bytes of piece `piece` from `offset` on; none or less where the piece ends before.
DEVICE i64 share_rest(const Work &k, int piece, i64 offset) {
  const i64 left = k.length - piece * k.piece;
  return (left < k.piece ? left : k.piece) - offset;
}

DEVICE u32 part_of(const uint4 &v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }

// The lane's part of one block; n bytes exist from p on. A packet exists whole or not at all.
DEVICE void load_share(u32 *raw, const u8 *p, i64 n, bool whole) {
#if PACKETS
#pragma unroll
  for (int q = 0; q < RAW; q++) {
    const u8 *packet = p + q * PACKET_BYTES;
    if (UNALIGNED) raw[q] = (i64)q * PACKET_BYTES < n ? load_word(packet) : 0;
    else if (whole) raw[q] = load_once<u32>(packet);
    else raw[q] = (i64)q * PACKET_BYTES < n ? load_once<u32>(packet) : 0;
  }
#else
#pragma unroll
  for (int h = 0; h < HALVES; h++) {
    const uint4 v = whole && !UNALIGNED ? load_once<uint4>(p + 128 * h) : load_edge(p + 128 * h, n - 128 * h);
#pragma unroll
    for (int i = 0; i < 4; i++) raw[4 * h + i] = part_of(v, i);
  }
#endif
}

DEVICE void store_share(u8 *p, const u32 *raw, i64 n, bool whole) {
#if PACKETS
#pragma unroll
  for (int q = 0; q < RAW; q++) {
    u8 *packet = p + q * PACKET_BYTES;
    if (!whole && (i64)q * PACKET_BYTES >= n) continue;
    if (UNALIGNED) store_word(packet, raw[q]);
    else store_once<u32>(packet, raw[q]);
  }
#else
#pragma unroll
  for (int h = 0; h < HALVES; h++) {
    const uint4 v = make_uint4(raw[4 * h], raw[4 * h + 1], raw[4 * h + 2], raw[4 * h + 3]);
    if (whole && !UNALIGNED) store_once<uint4>(p + 128 * h, v);
    else store_edge(p + 128 * h, n - 128 * h, v);
  }
#endif
}

// Words as loaded -> byte columns [half][POSITIONS], and back.
DEVICE void columns_of(u32 (*column)[POSITIONS], u32 *raw) {
#if PACKETS
#pragma unroll
  for (int h = 0; h < HALVES; h++) {
#pragma unroll
    for (int i = 0; i < POSITIONS; i++) column[h][i] = raw[POSITIONS * h + i];
    transpose_bits(column[h]);
  }
#elif HALVES == 2
  split_bytes<POSITIONS>(column[0], column[1], raw);
#else
#pragma unroll
  for (int i = 0; i < POSITIONS; i++) column[0][i] = raw[i];
#endif
}

DEVICE void raw_of(u32 *raw, u32 (*column)[POSITIONS]) {
#if PACKETS
#pragma unroll
  for (int h = 0; h < HALVES; h++) {
    transpose_bits(column[h]);
#pragma unroll
    for (int i = 0; i < POSITIONS; i++) raw[POSITIONS * h + i] = column[h][i];
  }
#elif HALVES == 2
  join_bytes<POSITIONS>(raw, column[0], column[1]);
#else
#pragma unroll
  for (int i = 0; i < POSITIONS; i++) raw[i] = column[0][i];
#endif
}

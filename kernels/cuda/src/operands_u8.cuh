// operands_u8.cuh: the product over GF(2) by eight-bit MMA; sm_75, and sm_100 on, where one-bit MMA is emulated.
//
// Roles and dealing of bit rows as in operands_b1.cuh. A data byte is x & (1 << b): it weighs 2^b. The matrix byte that
// it meets weighs 2^(7-b), so every product is 128 and the parity of a count is bit 7: no data is shifted to make single
// bits. Four positions go through the same accumulators, moved up by eight bits in between; a count of up to 224 · 128
// stays under bit 15, the parity bit of the next field.
//
// A lane's columns are taken by fours, then a pair, then a single one. A pair is made up to four by copies moved down by
// four bits, a single one by copies moved by 2, 4 and 6, so that K has no padding: COLUMNS steps of 32.
//
// The loop over positions is rolled: unrolled, the compiler brings all products forward and spills what they need.
#pragma once
#include "transpose.cuh"

struct Operands {
  static constexpr int FOURS = COLUMNS / 4, PAIR = COLUMNS / 2 % 2, SINGLE = COLUMNS % 2;
  static constexpr int REGISTERS = FOURS + PAIR + SINGLE;
  static constexpr int WORDS = 8 * COLUMNS;

  static_assert(COLUMNS >= 1 && COLUMNS <= 7, "counts must stay below 256");

  // Position j of a word of each column: bytes of up to four columns side by side.
  static DEVICE void gather(u32 *x, const u32 (*column)[POSITIONS], int word, int j) {
    const u32 pick = 0x40 + 0x11 * j;  // byte j of the first word and of the second
#pragma unroll
    for (int f = 0; f < FOURS; f++)
      x[f] = permute_bytes(permute_bytes(column[4 * f][word], column[4 * f + 1][word], pick),
                           permute_bytes(column[4 * f + 2][word], column[4 * f + 3][word], pick), 0x5410);
    if (PAIR) {
      const u32 two = permute_bytes(column[4 * FOURS][word], column[4 * FOURS + PAIR][word], pick);
      x[FOURS] = permute_bytes(two, two >> 4, 0x5410);
    }
    if (SINGLE) {
      // Copies at distances of 6 bits are copies moved down by 2 in the next byte. They overlap, but not in bits 0 and 1
      // of a byte, which are all that is used.
      const u32 one = column[COLUMNS - 1][word] >> (8 * j) & 255, two = one | one << 6;
      x[REGISTERS - 1] = two | two << 12;
    }
  }

  // Step s of K: the register it reads, and the bit that goes to the lower and to the upper half of K.
  static DEVICE int source(int s) { return s < 4 * FOURS ? s / 4 : s < 4 * FOURS + 2 * PAIR ? FOURS : FOURS + PAIR; }
  static DEVICE int low_bit(int s) { return s < 4 * FOURS ? s % 4 : s < 4 * FOURS + 2 * PAIR ? s - 4 * FOURS : 0; }
  static DEVICE int high_bit(int s) {
    return s < 4 * FOURS ? s % 4 + 4 : s < 4 * FOURS + 2 * PAIR ? s - 4 * FOURS + 2 : 1;
  }

  static DEVICE void multiply(u32 *acc, const u32 (*column)[POSITIONS], int first, const u32 *b) {
#pragma unroll
    for (int i = 0; i < 16; i++) acc[i] = 0;
#pragma unroll 1
    for (int j = 3; j >= 0; j--) {
      u32 x[2][REGISTERS];
      gather(x[0], column, first, j);
      gather(x[1], column, first + 1, j);
#pragma unroll
      for (int i = 0; i < 16; i++) acc[i] <<= 8;
#pragma unroll
      for (int s = 0; s < COLUMNS; s++) {
        const u32 p = x[0][source(s)], q = x[1][source(s)];
        const u32 low = 0x01010101u << low_bit(s), high = 0x01010101u << high_bit(s);
#pragma unroll
        for (int T = 0; T < 4; T++)
          mma_u8_k32(acc + 4 * T, p & low, q & low, p & high, q & high, b[8 * s + 2 * T], b[8 * s + 2 * T + 1]);
      }
    }
  }

  // acc[4T + 2h + i] is bit 2T + i of word first + h, the parity at bit 7 of each byte.
  static DEVICE u32 merge(const u32 *acc, int h) {
    u32 pair[4];
#pragma unroll
    for (int T = 0; T < 4; T++) pair[T] = select_bits(0x80808080u, acc[4 * T + 2 * h + 1], acc[4 * T + 2 * h] >> 1);
    return select_bits(0xf0f0f0f0u, select_bits(0xc0c0c0c0u, pair[3], pair[2] >> 2),
                       select_bits(0xc0c0c0c0u, pair[1], pair[0] >> 2) >> 4);
  }
};

// operands_b1.cuh: the product over GF(2) by one-bit MMA (AND, population count); sm_80 to sm_90.
//
// Data is operand A: an MMA row is a position, K runs over (column, bit). A word of one position of four byte columns
// is a finished operand register as it lies. The bit matrix is operand B: an MMA column is a bit row. Bit rows are dealt
// so that column n of MMA tile T is bit 2T + (n & 1) of output n >> 1: lane t then gets all eight bits of output t, and
// nothing crosses lanes.
//
// Parity is the low bit of a count. The four positions of a word go through the same accumulators one after the other,
// moved up by eight bits in between. COLUMNS <= 7 keeps counts at 224, below 256, so an accumulator ends as four byte
// fields, one a position. Eight of them are merged into a word of output bytes by seven selects.
#pragma once
#include "transpose.cuh"

struct Operands {
  static constexpr int REGISTERS = (COLUMNS + 3) / 4;  // K registers of an MMA row: four columns each
  static constexpr int WORDS = 4 * REGISTERS;          // words of matrix that a lane holds

  static_assert(COLUMNS >= 1 && COLUMNS <= 7, "counts must stay below 256");

  // Two words of positions, `first` and first + 1, of all columns against the matrix b.
  static DEVICE void multiply(u32 *acc, const u32 (*column)[POSITIONS], int first, const u32 *b) {
    u32 x[2][REGISTERS][4];
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
      for (int a = 0; a < REGISTERS; a++) {
        u32 four[4];
#pragma unroll
        for (int i = 0; i < 4; i++) four[i] = 4 * a + i < COLUMNS ? column[4 * a + i < COLUMNS ? 4 * a + i : 0][first + h] : 0;
        if (4 * a + 4 <= COLUMNS) transpose_bytes_of<4>(x[h][a], four);
        else transpose_bytes_of<(COLUMNS & 3) ? (COLUMNS & 3) : 4>(x[h][a], four);
      }
#pragma unroll
    for (int j = 3; j >= 0; j--) {
#pragma unroll
      for (int i = 0; i < 16; i++) acc[i] = j == 3 ? 0 : acc[i] << 8;
#pragma unroll
      for (int T = 0; T < 4; T++)
        if (REGISTERS == 1) mma_b1_k128(acc + 4 * T, x[0][0][j], x[1][0][j], b[T]);
        else
          mma_b1_k256(acc + 4 * T, x[0][0][j], x[1][0][j], x[0][REGISTERS - 1][j], x[1][REGISTERS - 1][j], b[2 * T], b[2 * T + 1]);
    }
  }

  // acc[4T + 2h + i] is bit 2T + i of word first + h, the parity at bit 0 of each byte.
  static DEVICE u32 merge(const u32 *acc, int h) {
    u32 pair[4];
#pragma unroll
    for (int T = 0; T < 4; T++) pair[T] = select_bits(0x01010101u, acc[4 * T + 2 * h], acc[4 * T + 2 * h + 1] << 1);
    return select_bits(0x0f0f0f0fu, select_bits(0x03030303u, pair[0], pair[1] << 2),
                       select_bits(0x03030303u, pair[2], pair[3] << 2) << 4);
  }
};

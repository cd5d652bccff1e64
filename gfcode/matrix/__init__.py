"""Matrices over GF(2^w) and GF(2): products, families of parity matrices, bit matrices, MDS certificates."""

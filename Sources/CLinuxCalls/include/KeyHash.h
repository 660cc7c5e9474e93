#ifndef CLINUXCALLS_KEY_HASH_H
#define CLINUXCALLS_KEY_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/// Random numbers of this process, drawn before `main`: two for each 16 bytes of a short key, and
/// one for the end.
extern uint64_t tc_key_secrets[17];

static inline uint64_t tc_key_word(const uint8_t *bytes) {
  uint64_t word;
  memcpy(&word, bytes, 8);
  return word;
}

static inline uint64_t tc_key_fold(uint64_t left, uint64_t right) {
  __uint128_t product = (__uint128_t)left * right;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/// A hash of 16 to 128 bytes, inline: most URLs.
///
/// The construction is that of XXH3 for these lengths: 16 bytes at a time, each half mixed with a
/// number that is secret, multiplied to 128 bits and folded, so that collisions cannot
/// be crafted. XXH3 itself costs two calls and the check whether its seed has been drawn, together
/// as much as the hash.
static inline uint64_t tc_hash_short_key(const uint8_t *bytes, size_t count) {
  uint64_t hash = (uint64_t)count * 0x9e3779b97f4a7c15u;
  size_t block = 0;
  for (; (block + 1) * 16 < count; block++) {
    hash += tc_key_fold(tc_key_word(bytes + block * 16) ^ tc_key_secrets[2 * block],
                        tc_key_word(bytes + block * 16 + 8) ^ tc_key_secrets[2 * block + 1]);
  }
  hash += tc_key_fold(tc_key_word(bytes + count - 16) ^ tc_key_secrets[2 * block],
                      tc_key_word(bytes + count - 8) ^ tc_key_secrets[2 * block + 1]);
  return tc_key_fold(hash ^ tc_key_secrets[16], 0x9fb21c651e98df25u);
}

/// What seeds the hash of keys of any other length.
static inline uint64_t tc_key_seed(void) { return tc_key_secrets[16]; }

typedef uint64_t tc_key_block __attribute__((vector_size(16), aligned(1)));

/// Whether two pieces of memory hold the same bytes; inline, for keys.
static inline bool tc_equal_keys(const uint8_t *left, const uint8_t *right, size_t count) {
  if (count < 16) return memcmp(left, right, count) == 0;
  const size_t last = count - 16;
  tc_key_block difference = *(const tc_key_block *)(left + last) ^
                            *(const tc_key_block *)(right + last);
#pragma clang loop unroll(disable) vectorize(disable)
  for (size_t offset = 0; offset < last; offset += 16) {
    difference |= *(const tc_key_block *)(left + offset) ^ *(const tc_key_block *)(right + offset);
  }
  return (difference[0] | difference[1]) == 0;
}

/// Copies the bytes of a key to where no other bytes of it are; inline.
static inline void tc_copy_key(uint8_t *to, const uint8_t *from, size_t count) {
  if (count < 16) {
    memcpy(to, from, count);
    return;
  }
  const size_t last = count - 16;
#pragma clang loop unroll(disable) vectorize(disable)
  for (size_t offset = 0; offset < last; offset += 16) {
    *(tc_key_block *)(to + offset) = *(const tc_key_block *)(from + offset);
  }
  *(tc_key_block *)(to + last) = *(const tc_key_block *)(from + last);
}

#endif

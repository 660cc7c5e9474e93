#include "KeyHash.h"

#include <sys/random.h>
#include <time.h>
#include <unistd.h>

uint64_t tc_key_secrets[17];

/// Before `main`, so that a lookup needs no check whether it has been done.
__attribute__((constructor)) static void tc_draw_key_secrets(void) {
  if (getentropy(tc_key_secrets, sizeof tc_key_secrets) == 0) return;
  // A sandbox may refuse. What an outsider can hardly know is better than what is public.
  uint64_t state = (uint64_t)time(NULL) << 32 ^ (uint64_t)getpid() ^ (uintptr_t)&state;
  for (int i = 0; i < 17; i++) {
    state += 0x9e3779b97f4a7c15u;
    tc_key_secrets[i] = tc_key_fold(state, 0xd1342543de82ef95u ^ (uint64_t)clock());
  }
}

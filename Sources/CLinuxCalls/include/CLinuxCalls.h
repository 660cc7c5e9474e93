/// The Linux calls that Swift's overlay lacks. Header only.
#ifndef TIEREDCACHE_CLINUXCALLS_H
#define TIEREDCACHE_CLINUXCALLS_H

#include "DiskCalls.h"
#include "Terminal.h"
#include "UnnamedFiles.h"

#if defined(__linux__)
#include <sys/prctl.h>

/// prctl(PR_SET_NAME): names the calling thread; at most 15 bytes are kept.
static inline void tc_set_thread_name(const char *name) {
  prctl(PR_SET_NAME, (unsigned long)name, 0, 0, 0);
}
#endif

#endif

// Stands in front of the Swift runtime's allocator, since the symbols of the program come before
// those of its libraries. The runtime has a way of its own for that, for Instruments, which cannot be
// used here: once it is on, Swift 6.3 on Linux crashes where a short string is copied.
#ifdef __linux__
#define _GNU_SOURCE
#endif
#include "AllocatedObjects.h"

#include <stdatomic.h>
#include <stddef.h>

static _Atomic(tc_object_observer) current;

void tc_observe_objects(tc_object_observer observer) {
  atomic_store_explicit(&current, observer, memory_order_release);
}

#ifdef __linux__
#include <dlfcn.h>

typedef void *(*allocator)(const void *metadata, size_t size, size_t alignment_mask);

static _Atomic(allocator) next;

static allocator find_next(void) {
  allocator found = atomic_load_explicit(&next, memory_order_relaxed);
  if (found) return found;
  found = (allocator)dlsym(RTLD_NEXT, "swift_allocObject");
  atomic_store_explicit(&next, found, memory_order_relaxed);
  return found;
}

void *swift_allocObject(const void *metadata, size_t size, size_t alignment_mask) {
  tc_object_observer observer = atomic_load_explicit(&current, memory_order_acquire);
  if (observer) observer(metadata);
  return find_next()(metadata, size, alignment_mask);
}
#endif

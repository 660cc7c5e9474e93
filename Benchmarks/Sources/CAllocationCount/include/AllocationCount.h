#ifndef ALLOCATION_COUNT_H
#define ALLOCATION_COUNT_H

/// How often this process has asked the C library for memory since it began.
///
/// Counts malloc, calloc, realloc and their aligned kin, in all threads. On systems whose C library
/// lets nobody stand in front of it, it is always 0: `allocation_count_works` tells.
unsigned long allocation_count(void);

/// Whether allocations are counted here.
int allocation_count_works(void);

#endif

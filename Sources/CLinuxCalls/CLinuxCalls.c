#include "CLinuxCalls.h"

#if defined(__linux__)
#include <pthread.h>

uint64_t tc_thread_number(void) { return (uint64_t)pthread_self(); }
#endif

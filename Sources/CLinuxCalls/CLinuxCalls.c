#include "CLinuxCalls.h"

#if defined(__linux__)
#include <pthread.h>

uint64_t tc_thread_number(void) { return (uint64_t)pthread_self(); }
#endif

static _Thread_local bool is_waiting_thread;

void tc_set_waiting_thread(void) { is_waiting_thread = true; }

bool tc_is_waiting_thread(void) { return is_waiting_thread; }

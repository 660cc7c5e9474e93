/// What services of this machine say over D-Bus, by sd-bus(3).
///
/// libsystemd is loaded when it is first needed: where there is none, nothing is known.
#ifndef TIEREDCACHE_MESSAGEBUS_H
#define TIEREDCACHE_MESSAGEBUS_H

#if defined(__linux__)
#include <stdbool.h>
#include <stdint.h>

/// NetworkManager's `Metered`: 1 yes, 2 no, 3 yes by a guess, 4 no by a guess. On the bus of the system.
#define TC_BUS_NETWORK_MANAGER 0
/// The portal's `GetMetered`: 0 or 1. On the bus of the user's session.
#define TC_BUS_PORTAL 1
/// UPower's `OnBattery`: 0 or 1. On the bus of the system.
#define TC_BUS_POWER 2
/// logind's `IdleHint`: 0 or 1. On the bus of the system.
#define TC_BUS_IDLE 3

/// A connection to a bus; one thread at a time uses it.
typedef struct tc_bus tc_bus;

/// Connects to the bus of the system, or to that of the user's session, or to the one at an address that is not NULL;
/// what is asked is sent later. No service is started. NULL where there is no such bus or no libsystemd.
tc_bus *tc_bus_open(bool is_system, const char *address);
void tc_bus_close(tc_bus *bus);
/// Asks from now on: now, at each change, and when the service comes or goes. 0 or a negative errno.
int tc_bus_ask(tc_bus *bus, int question);
/// Does what there is to do, and waits for more for at most so many milliseconds, or a moment for answers on their way. Whether anything was answered, or a
/// negative errno where the connection is over.
int tc_bus_process(tc_bus *bus, int milliseconds);
/// The last answer; -1 where the service is not there, or says nothing usable, -2 where there was no answer yet.
int64_t tc_bus_answer(const tc_bus *bus, int question);
/// Whether each question has had an answer, be it that nothing is known.
bool tc_bus_is_settled(const tc_bus *bus);
#endif

#endif

#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif

#if defined(__linux__)
#include "include/MessageBus.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

// The part of sd-bus.h that is used; it belongs to the stable ABI of libsystemd.so.0.
typedef struct sd_bus sd_bus;
typedef struct sd_bus_message sd_bus_message;
typedef struct sd_bus_slot sd_bus_slot;
typedef struct sd_bus_error sd_bus_error;
typedef int (*handler)(sd_bus_message *message, void *watch, sd_bus_error *error);

static struct {
  int (*open_system)(sd_bus **bus);
  int (*open_user)(sd_bus **bus);
  int (*new_bus)(sd_bus **bus);
  int (*set_address)(sd_bus *bus, const char *address);
  int (*set_bus_client)(sd_bus *bus, int is_client);
  int (*start)(sd_bus *bus);
  sd_bus *(*close_unref)(sd_bus *bus);
  int (*process)(sd_bus *bus, sd_bus_message **message);
  int (*wait)(sd_bus *bus, uint64_t microseconds);
  int (*add_match_async)(sd_bus *bus, sd_bus_slot **slot, const char *match, handler heard, handler installed, void *);
  int (*new_method_call)(sd_bus *bus, sd_bus_message **message, const char *service, const char *path,
                         const char *interface, const char *member);
  int (*set_auto_start)(sd_bus_message *message, int starts);
  int (*append)(sd_bus_message *message, const char *types, ...);
  int (*call_async)(sd_bus *bus, sd_bus_slot **slot, sd_bus_message *message, handler answered, void *, uint64_t);
  sd_bus_message *(*message_unref)(sd_bus_message *message);
  int (*is_error)(sd_bus_message *message, const char *name);
  int (*peek_type)(sd_bus_message *message, char *type, const char **contents);
  int (*enter_container)(sd_bus_message *message, char type, const char *contents);
  int (*read_basic)(sd_bus_message *message, char type, void *value);
} library;
static bool is_loaded;

static void load(void) {
  void *file = dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL);
  if (!file) return;
  const struct {
    void *function;
    const char *name;
  } functions[] = {
      {&library.open_system, "sd_bus_open_system"},
      {&library.open_user, "sd_bus_open_user"},
      {&library.new_bus, "sd_bus_new"},
      {&library.set_address, "sd_bus_set_address"},
      {&library.set_bus_client, "sd_bus_set_bus_client"},
      {&library.start, "sd_bus_start"},
      {&library.close_unref, "sd_bus_close_unref"},
      {&library.process, "sd_bus_process"},
      {&library.wait, "sd_bus_wait"},
      {&library.add_match_async, "sd_bus_add_match_async"},
      {&library.new_method_call, "sd_bus_message_new_method_call"},
      {&library.set_auto_start, "sd_bus_message_set_auto_start"},
      {&library.append, "sd_bus_message_append"},
      {&library.call_async, "sd_bus_call_async"},
      {&library.message_unref, "sd_bus_message_unref"},
      {&library.is_error, "sd_bus_message_is_method_error"},
      {&library.peek_type, "sd_bus_message_peek_type"},
      {&library.enter_container, "sd_bus_message_enter_container"},
      {&library.read_basic, "sd_bus_message_read_basic"},
  };
  for (size_t index = 0; index < sizeof(functions) / sizeof(functions[0]); index++) {
    void *address = dlsym(file, functions[index].name);
    if (!address) return;  // An older one; it stays loaded.
    *(void **)functions[index].function = address;
  }
  is_loaded = true;
}

#define PROPERTIES "org.freedesktop.DBus.Properties"

static const struct {
  const char *service, *path, *interface;
  /// A property, or a method where there is a signal for its changes.
  const char *member, *signal;
} questions[] = {
    [TC_BUS_NETWORK_MANAGER] = {"org.freedesktop.NetworkManager", "/org/freedesktop/NetworkManager",
                                "org.freedesktop.NetworkManager", "Metered", NULL},
    [TC_BUS_PORTAL] = {"org.freedesktop.portal.Desktop", "/org/freedesktop/portal/desktop",
                       "org.freedesktop.portal.NetworkMonitor", "GetMetered", "changed"},
    [TC_BUS_POWER] = {"org.freedesktop.UPower", "/org/freedesktop/UPower", "org.freedesktop.UPower", "OnBattery", NULL},
    [TC_BUS_IDLE] = {"org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager", "IdleHint",
                     NULL},
};
#define QUESTIONS (int)(sizeof(questions) / sizeof(questions[0]))

/// How long a service has for an answer, in microseconds.
static const uint64_t patience = 5000000;

typedef struct {
  tc_bus *owner;
  int question;
  bool is_asked, is_settled;
  /// Whether an answer is on its way, and whether what it says may be old.
  bool is_waiting, is_old;
  int64_t answer;
} watch;

struct tc_bus {
  sd_bus *bus;
  watch watches[QUESTIONS];
  bool has_changed;
};

/// -1 for anything but a truth value or a number, alone or in a variant.
static int64_t number_in(sd_bus_message *message) {
  char type = 0;
  const char *contents = NULL;
  if (library.is_error(message, NULL) || library.peek_type(message, &type, &contents) <= 0) return -1;
  if (type == 'v') {
    if (library.enter_container(message, 'v', contents) < 0) return -1;
    if (library.peek_type(message, &type, NULL) <= 0) return -1;
  }
  uint32_t number = 0;
  if ((type != 'b' && type != 'u') || library.read_basic(message, type, &number) < 0) return -1;
  return number;
}

static int send_question(watch *self);

static int did_answer(sd_bus_message *message, void *data, sd_bus_error *error) {
  (void)error;
  watch *self = data;
  self->is_waiting = false;
  // What the service said last holds until it answers; that it has gone is an answer.
  if (library.is_error(message, "org.freedesktop.DBus.Error.NoReply")) return send_question(self);
  int64_t answer = number_in(message);
  if (answer != self->answer || !self->is_settled) self->owner->has_changed = true;
  self->answer = answer;
  self->is_settled = true;
  return self->is_old ? send_question(self) : 0;
}

/// One question is on its way at a time, however often the service says that something has changed.
static int send_question(watch *self) {
  self->is_old = self->is_waiting;
  if (self->is_waiting) return 0;
  const char *service = questions[self->question].service, *path = questions[self->question].path;
  const char *interface = questions[self->question].interface, *member = questions[self->question].member;
  bool is_property = !questions[self->question].signal;
  sd_bus *bus = self->owner->bus;
  sd_bus_message *message = NULL;
  int result = library.new_method_call(bus, &message, service, path, is_property ? PROPERTIES : interface,
                                       is_property ? "Get" : member);
  if (result >= 0) result = library.set_auto_start(message, 0);
  if (result >= 0 && is_property) result = library.append(message, "ss", interface, member);
  if (result >= 0) result = library.call_async(bus, NULL, message, did_answer, self, patience);
  library.message_unref(message);
  self->is_waiting = result >= 0;
  return result < 0 ? result : 0;
}

static int did_change(sd_bus_message *message, void *data, sd_bus_error *error) {
  (void)message;
  (void)error;
  return send_question(data);
}

static int open_address(sd_bus **bus, const char *address) {
  sd_bus *made = NULL;
  int result = library.new_bus(&made);
  if (result < 0) return result;
  result = library.set_address(made, address);
  if (result >= 0) result = library.set_bus_client(made, 1);
  if (result >= 0) result = library.start(made);
  if (result >= 0)
    *bus = made;
  else
    library.close_unref(made);
  return result;
}

tc_bus *tc_bus_open(bool is_system, const char *address) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, load);
  if (!is_loaded) return NULL;
  tc_bus *self = calloc(1, sizeof(*self));
  if (!self) return NULL;
  int result = address     ? open_address(&self->bus, address)
               : is_system ? library.open_system(&self->bus)
                           : library.open_user(&self->bus);
  if (result < 0) {
    free(self);
    return NULL;
  }
  for (int question = 0; question < QUESTIONS; question++)
    self->watches[question] = (watch){.owner = self, .question = question, .answer = -1};
  return self;
}

void tc_bus_close(tc_bus *self) {
  library.close_unref(self->bus);
  free(self);
}

int tc_bus_ask(tc_bus *self, int question) {
  if (question < 0 || question >= QUESTIONS) return -EINVAL;
  watch *asked = &self->watches[question];
  const char *signal = questions[question].signal;
  char changes[512], owners[512];
  snprintf(changes, sizeof(changes), "type='signal',sender='%s',path='%s',interface='%s',member='%s'",
           questions[question].service, questions[question].path, signal ? questions[question].interface : PROPERTIES,
           signal ? signal : "PropertiesChanged");
  snprintf(owners, sizeof(owners),
           "type='signal',sender='org.freedesktop.DBus',member='NameOwnerChanged',arg0='%s'",
           questions[question].service);
  int result = library.add_match_async(self->bus, NULL, changes, did_change, NULL, asked);
  if (result >= 0) result = library.add_match_async(self->bus, NULL, owners, did_change, NULL, asked);
  if (result >= 0) result = send_question(asked);
  if (result < 0) return result;
  asked->is_asked = true;
  return 0;
}

/// How long a call goes on at least where there is something to do, or an answer on its way, in milliseconds.
static const int64_t moment = 50;

static int64_t now(void) {
  struct timespec time = {0, 0};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static bool is_any_waiting(const tc_bus *self) {
  for (int question = 0; question < QUESTIONS; question++)
    if (self->watches[question].is_waiting) return true;
  return false;
}

int tc_bus_process(tc_bus *self, int milliseconds) {
  self->has_changed = false;
  const int64_t begin = now();
  // A flood of messages does not hold the thread.
  const int64_t end = begin + (milliseconds > moment ? milliseconds : moment);
  do {
    int result = library.process(self->bus, NULL);
    if (result < 0) return result;
    if (result > 0) continue;
    int64_t limit = milliseconds > 0 ? begin + milliseconds : is_any_waiting(self) ? end : begin;
    int64_t rest = limit - now();
    if (rest <= 0 || self->has_changed) break;
    result = library.wait(self->bus, (uint64_t)rest * 1000);
    if (result < 0 && result != -EINTR) return result;
  } while (now() < end);
  return self->has_changed;
}

int64_t tc_bus_answer(const tc_bus *self, int question) {
  if (question < 0 || question >= QUESTIONS) return -1;
  return self->watches[question].is_settled ? self->watches[question].answer : -2;
}

bool tc_bus_is_settled(const tc_bus *self) {
  for (int question = 0; question < QUESTIONS; question++)
    if (self->watches[question].is_asked && !self->watches[question].is_settled) return false;
  return true;
}
#endif

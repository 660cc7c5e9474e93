#define MODULE_STRING "tieredcache"

#include "host.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <vlc_variables.h>

static host shared;
static bool is_known;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* No object of VLC lives as long as the cache. */
static void log_line(void *context, int level, const char *line) {
    (void)context;
    (void)level;
    fprintf(stderr, "tieredcache: %s\n", line);
}

static void complain(void *context, const char *text) { msg_Warn((vlc_object_t *)context, "%s", text); }

/* In atexit, before the library's own statics go: what is known of the directory is written down. */
static void close_cache(void) {
    pthread_mutex_lock(&lock);
    tiered_cache *cache = shared.cache;
    shared.cache = NULL;
    pthread_mutex_unlock(&lock);
    if (cache != NULL) tiered_cache_release(cache);
}

static void set(vlc_object_t *object, const char *variable, const char *name) {
    char *value = var_InheritString(object, variable);
    if (value != NULL && !settings_set(&shared.given, name, value))
        msg_Warn(object, "--%s makes no sense: %s", variable, value);
    free(value);
}

static void begin(vlc_object_t *object) {
    settings *given = &shared.given;
    settings_begin(given, complain, object);
    set(object, "tieredcache-directory", "directory");
    set(object, "tieredcache-exclude", "exclude");
    if (!given->enabled || tiered_abi() != TIERED_ABI) return;
    int status = settings_open(given, log_line, NULL, complain, object, &shared.cache);
    if (status != TIERED_OK) {
        msg_Warn(object, "no cache: %s", tiered_status_text(status));
        shared.cache = NULL;
    } else if (atexit(close_cache) != 0) {
        msg_Dbg(object, "the cache is not closed at the end"); /* as after a crash, which loses nothing */
    }
}

const host *host_of(vlc_object_t *object) {
    if (!var_InheritBool(object, "tieredcache")) return NULL;
    pthread_mutex_lock(&lock);
    if (!is_known) begin(object);
    is_known = true;
    const host *result = shared.cache != NULL ? &shared : NULL;
    pthread_mutex_unlock(&lock);
    return result;
}

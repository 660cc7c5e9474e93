/* A plug-in for mpv that plays http and https through TieredCache: ~/.config/mpv/scripts/tieredcache.so
 *
 * Its hooks replace stream-open-filename alone, so that the URL stays what it is for people, for watch-later and for
 * other scripts. The hook on_load comes late, after scripts that find out what is to be opened; of on_load_fail one
 * comes first, to give those scripts the URL that they know, and one late, to take what they have found. What cannot be
 * opened through the cache is opened once more without it, so that errors are mpv's own. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plugin.h"

int mpv_open_cplugin(mpv_handle *mpv);

enum { hook_load = 1, hook_failed, hook_failed_late };
enum { early = -100, late = 50 }; /* 0 is the 50 of scripts in Lua, so that their 10 is -40 */

void plugin_say(plugin *self, const char *text) {
    char *line = text_format("tieredcache: %s", text);
    if (line) mpv_command(self->mpv, (const char *[]){"print-text", line, NULL});
    free(line);
}

void plugin_complain(void *self, const char *text) { plugin_say(self, text); }

static char *own_file(plugin *self) {
    mpv_node result;
    char *path = NULL;
    const char *command[] = {"expand-path", "~~/script-opts/tieredcache.conf", NULL};
    if (mpv_command_ret(self->mpv, command, &result) < 0) return NULL;
    if (result.format == MPV_FORMAT_STRING && result.u.string[0] == '/') path = strdup(result.u.string);
    mpv_free_node_contents(&result);
    return path;
}

/* Reads the settings anew, so that people may change them between films. The cache stays what it was opened as. */
static void read_settings(plugin *self) {
    static const char prefix[] = "tieredcache-";
    char *path = own_file(self);
    mpv_node options;
    settings_end(&self->given);
    settings_begin_with(&self->given, path, plugin_complain, self);
    free(path);
    bool has_options = mpv_get_property(self->mpv, "script-opts", MPV_FORMAT_NODE, &options) >= 0;
    for (int i = 0; has_options && options.format == MPV_FORMAT_NODE_MAP && i < options.u.list->num; i++) {
        const char *name = options.u.list->keys[i];
        const mpv_node *value = &options.u.list->values[i];
        if (strncmp(name, prefix, strlen(prefix)) != 0 || value->format != MPV_FORMAT_STRING) continue;
        if (settings_set(&self->given, name + strlen(prefix), value->u.string)) continue;
        char *text = text_format("the script option %s cannot be used", name);
        if (text) plugin_say(self, text);
        free(text);
    }
    if (has_options) mpv_free_node_contents(&options);
    if (self->cache) settings_rule(&self->given, self->cache, plugin_complain, self);
}

static void forget(plugin *self) {
    free(self->url);
    free(self->replacement);
    self->url = self->replacement = NULL;
}

static void open_with(plugin *self, const char *url) {
    mpv_set_property_string(self->mpv, "stream-open-filename", url);
}

/* Streams of ours are no network for mpv, which then keeps little ahead; it is to do as it does for http. */
static void keep_ahead(plugin *self) {
    char *cache = mpv_get_property_string(self->mpv, "cache");
    if (cache && strcmp(cache, "auto") == 0) mpv_set_property_string(self->mpv, "file-local-options/cache", "yes");
    mpv_free(cache);
}

static void replace(plugin *self) {
    char *url = mpv_get_property_string(self->mpv, "stream-open-filename");
    if (url && (self->replacement = routes_replace(self, url))) {
        self->url = strdup(url);
        open_with(self, self->replacement);
        if (strstr(self->replacement, "tiered://")) keep_ahead(self);
    }
    mpv_free(url);
}

/* Gives the URL back that ours stood for; whether it was ours that failed. */
static bool give_back(plugin *self) {
    char *url = mpv_get_property_string(self->mpv, "stream-open-filename");
    bool is_ours = url && self->replacement && self->url && strcmp(url, self->replacement) == 0;
    mpv_free(url);
    if (is_ours) open_with(self, self->url);
    return is_ours;
}

/* Another script has found something else, or mpv tries by itself. */
static void try_again(plugin *self, bool was_ours) {
    char *url = mpv_get_property_string(self->mpv, "stream-open-filename");
    if (url && was_ours && self->url && strcmp(url, self->url) == 0) {
        /* The same with its scheme in front: mpv opens no URL a second time that has not changed. */
        char *bare = url_is_http(url) ? text_format("lavf://%s", url) : NULL;
        if (bare) open_with(self, bare);
        free(bare);
        forget(self);
    } else {
        forget(self);
        replace(self);
    }
    mpv_free(url);
}

static void run_hook(plugin *self, uint64_t which) {
    static bool was_ours;
    if (which == hook_load) {
        forget(self);
        read_settings(self);
        replace(self);
    } else if (which == hook_failed) {
        was_ours = give_back(self);
        streams_complain(self);
    } else {
        try_again(self, was_ours);
    }
}

static void handle(plugin *self, const mpv_event *event) {
    switch (event->event_id) {
    case MPV_EVENT_HOOK: {
        const mpv_event_hook *hook = event->data;
        run_hook(self, event->reply_userdata);
        mpv_hook_continue(self->mpv, hook->id);
        break;
    }
    case MPV_EVENT_FILE_LOADED:
        self->is_playing = true;
        held_prefetch(self);
        break;
    case MPV_EVENT_END_FILE:
        self->is_playing = false;
        streams_complain(self);
        held_reserve(self);
        break;
    case MPV_EVENT_CLIENT_MESSAGE: held_message(self, event->data); break;
    default: break;
    }
}

static void *release(void *cache) {
    tiered_cache_release(cache);
    return NULL;
}

/* mpv waits for this thread before it ends, and people wait for mpv: 100 ms are enough unless an origin says nothing.
 * What has come by then is stored in any case, up to the last whole block. */
static void close_cache(plugin *self) {
    pthread_t thread;
    struct timespec end;
    if (!self->cache || pthread_create(&thread, NULL, release, self->cache) != 0) return;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += 100000000;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    if (pthread_timedjoin_np(thread, NULL, &end) != 0) pthread_detach(thread);
}

int mpv_open_cplugin(mpv_handle *mpv) {
    static plugin all; /* streams may be open for longer than this function runs */
    plugin *self = &all;
    unsigned long version = mpv_client_api_version() >> 16;
    if ((version != 1 && version != 2) || self->mpv) return -1;
    self->mpv = mpv;
    self->has_user_data = true;
    self->can_stream = streams_register(self);
    read_settings(self);
    if (mpv_hook_add(mpv, hook_load, "on_load", late) < 0 || mpv_hook_add(mpv, hook_failed, "on_load_fail", early) < 0 ||
        mpv_hook_add(mpv, hook_failed_late, "on_load_fail", late) < 0)
        return -1;
    int64_t told = 0;
    for (;;) {
        const mpv_event *event = mpv_wait_event(mpv, self->is_playing && self->cache ? 1 : -1);
        if (event->event_id == MPV_EVENT_SHUTDOWN) break;
        handle(self, event);
        if (self->is_playing && self->cache && mpv_get_time_us(mpv) - told >= 1000000) {
            told = mpv_get_time_us(mpv);
            held_reserve(self);
            held_publish(self);
        }
    }
    close_cache(self);
    return 0;
}

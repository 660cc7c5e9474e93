/* What is stored of the film that plays, for scripts that draw it; prefetching; and the messages of other scripts.
 *
 * From mpv 0.36 on it is in the property user-data/tieredcache: url, size, stored, and ranges, a list of start and end
 * in bytes. Before, it is in shared-script-properties: tieredcache-url, tieredcache-size, tieredcache-stored and
 * tieredcache-ranges, such as 0-65536,131072-200000. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

enum { most_ranges = 256 };

typedef struct holding {
    int64_t size, stored, count; /* size: -1 where it is not known */
    int64_t bounds[2 * most_ranges];
} holding;

static void look(plugin *self, holding *held) {
    tiered_stream *stream = self->url ? streams_open(self->url) : NULL;
    if (!stream) stream = streams_open(NULL);
    *held = (holding){.size = -1};
    if (!stream) return;
    held->size = tiered_size(stream);
    held->count = tiered_stream_stored(stream, held->bounds, most_ranges);
    if (held->count < 0) held->count = 0;
    if (held->count > most_ranges) held->count = most_ranges;
    for (int64_t i = 0; i < held->count; i++) held->stored += held->bounds[2 * i + 1] - held->bounds[2 * i];
    tiered_stream_release(stream);
}

static bool publish_user_data(plugin *self, const holding *held) {
    static char *names[] = {"url", "size", "stored", "ranges"}, *bounds_names[] = {"start", "end"};
    mpv_node bounds[most_ranges][2], ranges[most_ranges], values[4];
    mpv_node_list lists[most_ranges], range_list, map;
    for (int i = 0; i < held->count; i++) {
        for (int side = 0; side < 2; side++) {
            bounds[i][side].format = MPV_FORMAT_INT64;
            bounds[i][side].u.int64 = held->bounds[2 * i + side];
        }
        lists[i] = (mpv_node_list){2, bounds[i], bounds_names};
        ranges[i].format = MPV_FORMAT_NODE_MAP;
        ranges[i].u.list = &lists[i];
    }
    range_list = (mpv_node_list){(int)held->count, ranges, NULL};
    values[0].format = MPV_FORMAT_STRING;
    values[0].u.string = self->url ? self->url : "";
    values[1].format = values[2].format = MPV_FORMAT_INT64;
    values[1].u.int64 = held->size;
    values[2].u.int64 = held->stored;
    values[3].format = MPV_FORMAT_NODE_ARRAY;
    values[3].u.list = &range_list;
    map = (mpv_node_list){4, values, names};
    mpv_node all = {.format = MPV_FORMAT_NODE_MAP, .u.list = &map};
    return mpv_set_property(self->mpv, "user-data/tieredcache", MPV_FORMAT_NODE, &all) >= 0;
}

/* A new string: 0-65536,131072-200000 */
static char *ranges_text(const holding *held) {
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    if (!out) return NULL;
    for (int64_t i = 0; i < held->count; i++)
        fprintf(out, "%s%" PRId64 "-%" PRId64, i ? "," : "", held->bounds[2 * i], held->bounds[2 * i + 1]);
    fclose(out);
    return text;
}

static void share(plugin *self, const char *name, const char *text) {
    char *pair = text ? text_format("tieredcache-%s=%s", name, text) : NULL;
    if (pair) mpv_command(self->mpv, (const char *[]){"change-list", "shared-script-properties", "append", pair, NULL});
    free(pair);
}

static void share_number(plugin *self, const char *name, int64_t number) {
    char *text = text_format("%" PRId64, number);
    share(self, name, text);
    free(text);
}

void held_publish(plugin *self) {
    holding held;
    look(self, &held);
    if (self->has_user_data && publish_user_data(self, &held)) return;
    self->has_user_data = false;
    char *ranges = ranges_text(&held);
    share(self, "url", self->url ? self->url : "");
    share_number(self, "size", held.size);
    share_number(self, "stored", held.stored);
    share(self, "ranges", ranges);
    free(ranges);
}

/* Tells all scripts: script-message tieredcache-NAME URL TEXT... */
static void reply(plugin *self, const char *name, const char *url, const char *first, const char *second) {
    mpv_command(self->mpv, (const char *[]){"script-message", name, url, first, second, NULL});
}

static void reply_held(plugin *self, const char *url) {
    holding held;
    look(self, &held);
    char *size = text_format("%" PRId64, held.size), *ranges = ranges_text(&held);
    if (size && ranges) reply(self, "tieredcache-held", url, size, ranges);
    free(size);
    free(ranges);
}

static int change(plugin *self, const char *what, const char *url) {
    if (!self->cache) return TIERED_E_NOT_FOUND;
    int status = TIERED_E_INVALID;
    if (strcmp(what, "pin") == 0) status = tiered_pin(self->cache, url, NULL, true);
    if (strcmp(what, "unpin") == 0) status = tiered_pin(self->cache, url, NULL, false);
    if (strcmp(what, "remove") == 0) status = tiered_remove(self->cache, url, NULL);
    return status;
}

void held_message(plugin *self, const mpv_event_client_message *message) {
    if (message->num_args < 1) return;
    const char *what = message->args[0], *url = message->num_args > 1 ? message->args[1] : self->url;
    if (!url) url = "";
    if (strcmp(what, "held") == 0) return reply_held(self, url);
    if (strcmp(what, "pin") != 0 && strcmp(what, "unpin") != 0 && strcmp(what, "remove") != 0) return;
    const char *result = tiered_status_text(change(self, what, url));
    reply(self, "tieredcache-result", url, what, result);
    char *text = text_format("%s: %s", what, result);
    if (text) mpv_command(self->mpv, (const char *[]){"show-text", text, NULL});
    if (text) plugin_say(self, text);
    free(text);
}

void held_prefetch(plugin *self) {
    if (!self->cache) return;
    int64_t place = -1;
    char *name = NULL, *url = NULL;
    if (mpv_get_property(self->mpv, "playlist-pos", MPV_FORMAT_INT64, &place) >= 0 && place >= 0)
        name = text_format("playlist/%" PRId64 "/filename", place + 1);
    if (name) url = mpv_get_property_string(self->mpv, name);
    if (!url || !self->given.enabled || tiered_prefetch(self->cache, (const char *const[]){url}, 1, 0) != TIERED_OK)
        tiered_prefetch(self->cache, NULL, 0, 0);
    free(name);
    mpv_free(url);
}

void held_reserve(plugin *self) {
    if (!self->cache) return;
    double seconds = 0;
    int is_idle = 0;
    if (!self->is_playing) {
        tiered_prefetch_reserve(self->cache, -1);
        return;
    }
    mpv_get_property(self->mpv, "demuxer-cache-duration", MPV_FORMAT_DOUBLE, &seconds);
    mpv_get_property(self->mpv, "demuxer-cache-idle", MPV_FORMAT_FLAG, &is_idle);
    /* A player that has all it wants has enough, however little that is. */
    if (is_idle && seconds < 60) seconds = 60;
    tiered_prefetch_reserve(self->cache, seconds > 86400 ? 86400000 : (int64_t)(seconds * 1000));
}

/* Where mpv goes in place of a URL: files through stream callbacks, what refers to further URLs through the proxy in
 * this process. What the extension does not tell goes through the proxy, too, which looks at the answer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

static void log_line(void *context, int level, const char *line) {
    (void)context;
    (void)level;
    fprintf(stderr, "[tieredcache] %s\n", line);
}

/* Opens the cache when it is first needed: a player of files on the disk never does. */
static bool has_cache(plugin *self) {
    if (self->has_tried) return self->cache;
    self->has_tried = true;
    int status = settings_open(&self->given, log_line, NULL, plugin_complain, self, &self->cache);
    if (status == TIERED_OK) return true;
    self->cache = NULL;
    char *text = text_format("plays without a cache: %s", tiered_status_text(status));
    if (text) plugin_say(self, text);
    free(text);
    return false;
}

/* The library knows no proxies for HTTP: what is to go through one is mpv's. */
static bool uses_http_proxy(plugin *self) {
    const char *environment = getenv("http_proxy");
    char *option = mpv_get_property_string(self->mpv, "http-proxy");
    bool is_set = (environment && *environment) || (option && *option);
    mpv_free(option);
    return is_set;
}

/* As long as mpv itself would wait. */
static int32_t deadline(plugin *self) {
    double seconds;
    if (mpv_get_property(self->mpv, "network-timeout", MPV_FORMAT_DOUBLE, &seconds) < 0 || seconds > 86400) return 0;
    return seconds > 0 ? (int32_t)(seconds * 1000) : -1;
}

static char *replace_url(plugin *self, const char *url) {
    if (!self->given.enabled || !url_is_http(url) || uses_http_proxy(self) || !has_cache(self)) return NULL;
    if (!settings_take(&self->given, self->cache, url)) return NULL;
    if (!self->can_stream || !url_is_file(url)) return settings_proxied(self->cache, url);
    text_list fields = {NULL, 0};
    fields_collect(self, url, &fields);
    char *place = streams_url(url, &fields, deadline(self));
    text_empty(&fields);
    return place;
}

/* One value of an EDL: %COUNT%BYTES, or what comes before a separator. */
static const char *value(const char *at, const char **bytes, size_t *count) {
    if (*at == '%') {
        char *end;
        unsigned long long length = strtoull(at + 1, &end, 10);
        if (end > at + 1 && *end == '%' && length <= strlen(end + 1)) {
            *bytes = end + 1;
            *count = (size_t)length;
            return *bytes + length;
        }
    }
    *bytes = at;
    *count = url_is_http(at) ? strcspn(at, ",;\n!") : strcspn(at, "=,;\n!");
    return at + *count;
}

/* Replaces each URL in an EDL, wherever a value may be; what is no URL stays as it is. */
static char *replace_edl(plugin *self, const char *edl) {
    char *result = NULL;
    size_t length = 0;
    bool is_changed = false;
    FILE *out = open_memstream(&result, &length);
    if (!out) return NULL;
    const char *at = edl + strlen("edl://");
    fputs("edl://", out);
    while (*at) {
        const char *bytes, *next;
        size_t count;
        next = value(at, &bytes, &count);
        char *url = strndup(bytes, count), *place = url && url_is_http(url) ? replace_url(self, url) : NULL;
        if (place) {
            fprintf(out, "%%%zu%%%s", strlen(place), place);
            is_changed = true;
        } else {
            fwrite(at, 1, (size_t)(next - at), out);
        }
        free(place);
        free(url);
        at = next;
        if (*at) fputc(*at++, out);
    }
    bool is_whole = !ferror(out);
    if (fclose(out) == 0 && is_whole && is_changed) return result;
    free(result);
    return NULL;
}

char *routes_replace(plugin *self, const char *url) {
    if (strncmp(url, "edl://", 6) == 0) return replace_edl(self, url);
    return replace_url(self, url);
}

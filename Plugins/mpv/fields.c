/* The fields that mpv's own options have it send: --user-agent, --referrer, --http-header-fields, --cookies. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "plugin.h"

static bool has_field(const text_list *fields, const char *name) {
    size_t count = strlen(name);
    for (size_t i = 0; i < fields->count; i++)
        if (strncasecmp(fields->items[i], name, count) == 0 && fields->items[i][count] == ':') return true;
    return false;
}

static void add_option(plugin *self, const char *option, const char *name, text_list *fields) {
    char *value = mpv_get_property_string(self->mpv, option);
    if (value && *value && !has_field(fields, name)) {
        char *field = text_format("%s: %s", name, value);
        if (field) text_add(fields, field);
        free(field);
    }
    mpv_free(value);
}

/* The host of an http URL, without user and port; NULL where there is none. count is its length. */
static const char *host_of(const char *url, size_t *count) {
    const char *begin = strstr(url, "://");
    if (!begin) return NULL;
    begin += 3;
    const char *end = begin + strcspn(begin, "/?#"), *at = memrchr(begin, '@', (size_t)(end - begin));
    if (at) begin = at + 1;
    const char *colon = *begin == '[' ? NULL : memchr(begin, ':', (size_t)(end - begin));
    *count = (size_t)((colon ? colon : end) - begin);
    return begin;
}

/* Whether a cookie of this domain and path is for url. */
static bool suits(const char *url, const char *domain, const char *path, bool is_secure) {
    size_t count, wanted = strlen(domain);
    const char *host = host_of(url, &count);
    if (!host || !wanted || (is_secure && strncasecmp(url, "https:", 6) != 0)) return false;
    if (*domain == '.' && count == wanted - 1) domain++, wanted--; /* the domain itself */
    if (*domain == '.' ? count < wanted : count != wanted) return false;
    if (strncasecmp(host + count - wanted, domain, wanted) != 0) return false;
    const char *place = strchr(host, '/');
    return strncmp(place ? place : "/", path, strlen(path)) == 0;
}

/* Reads a file in the form of Netscape: domain, whether below it, path, whether secure, expiry, name and value. */
static char *cookies_of(const char *path, const char *url) {
    FILE *file = fopen(path, "re");
    if (!file) return NULL;
    char *line = NULL, *all = NULL;
    size_t room = 0;
    while (getline(&line, &room, file) >= 0) {
        char *column[7], *rest = line;
        size_t count = 0;
        line[strcspn(line, "\r\n")] = 0;
        if (strncmp(line, "#HttpOnly_", 10) == 0) rest += 10;
        if (*rest == '#') continue;
        while (rest && count < 7) column[count++] = strsep(&rest, "\t");
        if (count < 7 || !suits(url, column[0], column[2], strcasecmp(column[3], "TRUE") == 0)) continue;
        char *more = text_format("%s%s%s=%s", all ? all : "", all ? "; " : "", column[5], column[6]);
        if (!more) break;
        free(all);
        all = more;
    }
    free(line);
    fclose(file);
    return all;
}

static void add_cookies(plugin *self, const char *url, text_list *fields) {
    int wanted = 0;
    char *path = NULL;
    if (mpv_get_property(self->mpv, "cookies", MPV_FORMAT_FLAG, &wanted) >= 0 && wanted)
        path = mpv_get_property_string(self->mpv, "cookies-file");
    char *cookies = path && *path && !has_field(fields, "Cookie") ? cookies_of(path, url) : NULL;
    char *field = cookies ? text_format("Cookie: %s", cookies) : NULL;
    if (field) text_add(fields, field);
    free(field);
    free(cookies);
    mpv_free(path);
}

void fields_collect(plugin *self, const char *url, text_list *fields) {
    mpv_node list;
    if (mpv_get_property(self->mpv, "http-header-fields", MPV_FORMAT_NODE, &list) >= 0) {
        for (int i = 0; list.format == MPV_FORMAT_NODE_ARRAY && i < list.u.list->num; i++) {
            const mpv_node *item = &list.u.list->values[i];
            if (item->format == MPV_FORMAT_STRING && strchr(item->u.string, ':')) text_add(fields, item->u.string);
        }
        mpv_free_node_contents(&list);
    }
    add_option(self, "user-agent", "User-Agent", fields);
    add_option(self, "referrer", "Referer", fields);
    add_cookies(self, url, fields);
}

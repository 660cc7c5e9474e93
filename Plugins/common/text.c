#include "text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool text_add(text_list *list, const char *text) {
    char **items = realloc(list->items, (list->count + 2) * sizeof *items);
    if (!items) return false;
    list->items = items;
    char *copy = strdup(text);
    items[list->count] = copy;
    items[list->count + 1] = NULL;
    if (!copy) return false;
    list->count++;
    return true;
}

void text_remove(text_list *list, size_t index) {
    free(list->items[index]);
    /* With the NULL at the end. */
    memmove(list->items + index, list->items + index + 1, (list->count - index) * sizeof *list->items);
    list->count--;
}

void text_empty(text_list *list) {
    for (size_t i = 0; i < list->count; i++) free(list->items[i]);
    free(list->items);
    *list = (text_list){NULL, 0};
}

char *text_format(const char *format, ...) {
    va_list arguments;
    char *text = NULL;
    va_start(arguments, format);
    int count = vasprintf(&text, format, arguments);
    va_end(arguments);
    return count < 0 ? NULL : text;
}

bool url_is_http(const char *text) {
    return strncasecmp(text, "http://", 7) == 0 || strncasecmp(text, "https://", 8) == 0;
}

/* The extension of the last part of the path, without the dot, in small letters; "" where there is none. */
static void url_extension(const char *url, char *extension, size_t count) {
    extension[0] = 0;
    const char *scheme = strstr(url, "://"), *path = strchr(scheme ? scheme + 3 : url, '/');
    if (!path || !count) return;
    const char *end = path + strcspn(path, "?#"), *dot = NULL;
    for (const char *at = path; at < end; at++) {
        if (*at == '/') dot = NULL;
        if (*at == '.') dot = at + 1;
    }
    if (!dot || (size_t)(end - dot) >= count) return;
    for (size_t i = 0; i < (size_t)(end - dot); i++) extension[i] = (char)tolower((unsigned char)dot[i]);
    extension[end - dot] = 0;
}

static bool is_one_of(const char *url, const char *const *names) {
    char extension[16];
    url_extension(url, extension, sizeof extension);
    for (; *names; names++)
        if (strcmp(extension, *names) == 0) return true;
    return false;
}

bool url_is_playlist(const char *url) {
    static const char *const names[] = {"m3u8", "m3u", "mpd", NULL};
    return is_one_of(url, names);
}

bool url_is_file(const char *url) {
    static const char *const names[] = {"mp4", "m4v", "m4a", "mov", "3gp", "mkv",  "mka",  "webm", "avi", "flv", "wmv", "ts",
                                        "m2ts", "mpg", "mpeg", "vob", "ogv", "ogg", "oga", "opus", "mp3", "aac", "flac",
                                        "wav", NULL};
    return is_one_of(url, names);
}

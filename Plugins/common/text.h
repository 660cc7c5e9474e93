/* Text that the plug-ins take apart: URLs, and lists of words. */
#ifndef PLUGIN_TEXT_H
#define PLUGIN_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Strings in the order in which they came; the last pointer is NULL, as tiered_request.fields has it. */
typedef struct text_list {
    char **items; /* NULL where there is none */
    size_t count;
} text_list;

bool text_add(text_list *list, const char *text, size_t count); /* copies; false without memory */
bool text_add_whole(text_list *list, const char *text);
void text_empty(text_list *list);

/* A new string as printf writes it, or NULL without memory. */
char *text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whether text begins with http:// or https://, in letters of either case. */
bool url_is_http(const char *text);
/* The host of an http URL, without user and port; NULL where there is none. count is its length. */
const char *url_host(const char *url, size_t *count);
/* Whether the host is name, or lies below it: name "example.com" has "www.example.com", "*" has all. */
bool url_is_of(const char *url, const char *name);
/* The extension of the last part of the path, without the dot, in small letters; "" where there is none. */
void url_extension(const char *url, char *extension, size_t count);
/* Whether the extension is that of a playlist or a manifest, which refers to further URLs. */
bool url_is_playlist(const char *url);
/* Whether the extension is that of a film or of music in one file. */
bool url_is_file(const char *url);

#endif

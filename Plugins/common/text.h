/* Lists of text, and what the extension of a URL tells. */
#ifndef PLUGIN_TEXT_H
#define PLUGIN_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Strings in the order in which they came; the last pointer is NULL, as tiered_request.fields has it. */
typedef struct text_list {
    char **items; /* NULL where there is none */
    size_t count;
} text_list;

bool text_add(text_list *list, const char *text); /* copies; false without memory */
void text_remove(text_list *list, size_t index);
void text_empty(text_list *list);

/* A new string as printf writes it, or NULL without memory. */
char *text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whether text begins with http:// or https://, in letters of either case. */
bool url_is_http(const char *text);
/* Whether the extension is that of a playlist or a manifest, which refers to further URLs. */
bool url_is_playlist(const char *url);
/* Whether the extension is that of a film or of music in one file. */
bool url_is_file(const char *url);

#endif

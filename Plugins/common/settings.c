#include "settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool set_flag(bool *flag, const char *value) {
    static const char *const yes[] = {"yes", "1", "true", "on"}, *const no[] = {"no", "0", "false", "off"};
    for (size_t i = 0; i < 4; i++) {
        if (strcasecmp(value, yes[i]) == 0) return *flag = true, true;
        if (strcasecmp(value, no[i]) == 0) return *flag = false, true;
    }
    return false;
}

static bool set_size(int64_t *size, const char *value) {
    static const struct {
        const char *name;
        int64_t bytes;
    } units[] = {{"", 1},         {"B", 1},           {"KB", 1000},       {"MB", 1000000},       {"GB", 1000000000},
                 {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TB", 1000000000000}, {"TiB", 1LL << 40}};
    char *end;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    if (errno || end == value || number <= 0) return false;
    while (*end == ' ') end++;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcasecmp(end, units[i].name) == 0) return !__builtin_mul_overflow(number, units[i].bytes, size);
    return false;
}

static bool set_directory(char **directory, const char *value) {
    const char *home = getenv("HOME");
    char *text = value[0] == '~' && value[1] == '/' && home ? text_format("%s%s", home, value + 1) : strdup(value);
    if (!text) return false;
    free(*directory);
    *directory = text;
    return true;
}

static bool set_level(int *level, const char *value) {
    static const char *const names[] = {"none", "error", "warning", "info", "debug", "trace"};
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (strcasecmp(value, names[i]) == 0) return *level = i, true;
    return false;
}

static bool add_words(text_list *list, const char *value) {
    if (!*value) return text_empty(list), true;
    while (*value) {
        size_t count = strcspn(value, " \t,");
        if (count && !text_add(list, value, count)) return false;
        value += count + strspn(value + count, " \t,");
    }
    return true;
}

/* A host and, behind a space, what holds for it. */
static bool add_rule(text_list *list, const char *value, char wanted) {
    if (!*value) return text_empty(list), true;
    const char *rest = strpbrk(value, " \t");
    if (!rest || !rest[strspn(rest, " \t")] || (wanted && !strchr(rest, wanted))) return false;
    return text_add_whole(list, value);
}

bool settings_set(settings *given, const char *name, const char *value) {
    char plain[32];
    size_t count = 0;
    for (; name[count] && count < sizeof plain - 1; count++)
        plain[count] = name[count] == '-' ? '_' : (char)tolower((unsigned char)name[count]);
    plain[count] = 0;
    if (strcmp(plain, "enabled") == 0) return set_flag(&given->enabled, value);
    if (strcmp(plain, "directory") == 0) return set_directory(&given->directory, value);
    if (strcmp(plain, "memory_limit") == 0) return set_size(&given->memory_limit, value);
    if (strcmp(plain, "disk_limit") == 0) return set_size(&given->disk_limit, value);
    if (strcmp(plain, "exclude") == 0) return add_words(&given->exclude, value);
    if (strcmp(plain, "header") == 0) return add_rule(&given->headers, value, ':');
    if (strcmp(plain, "key") == 0) return add_rule(&given->keys, value, 0);
    if (strcmp(plain, "log") == 0) return set_level(&given->log_level, value);
    return false;
}

static char *trimmed(char *text) {
    text += strspn(text, " \t\r\n");
    for (size_t count = strlen(text); count && isspace((unsigned char)text[count - 1]); count--) text[count - 1] = 0;
    return text;
}

void settings_read(settings *given, const char *path, settings_complaint complain, void *context) {
    FILE *file = fopen(path, "re");
    if (!file) return;
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, file) >= 0) {
        char *name = trimmed(line), *value = strchr(name, '=');
        if (!*name || *name == '#') continue;
        if (value) *value++ = 0;
        if (value && settings_set(given, trimmed(name), trimmed(value))) continue;
        char *text = text_format("%s: '%s' cannot be used", path, name);
        if (text && complain) complain(context, text);
        free(text);
    }
    free(line);
    fclose(file);
}

static void read_environment(settings *given, settings_complaint complain, void *context) {
    static const char *const names[] = {"ENABLED", "DIRECTORY", "MEMORY_LIMIT", "DISK_LIMIT",
                                        "EXCLUDE", "HEADER",    "KEY",          "LOG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *name = text_format("TIEREDCACHE_%s", names[i]);
        const char *value = name ? getenv(name) : NULL;
        if (value && !settings_set(given, names[i], value)) {
            char *text = text_format("%s: '%s' cannot be used", name, value);
            if (text && complain) complain(context, text);
            free(text);
        }
        free(name);
    }
}

void settings_begin_with(settings *given, const char *own, settings_complaint complain, void *context) {
    *given = (settings){.enabled = true, .log_level = TIERED_LOG_ERROR};
    settings_read(given, "/etc/tieredcache/plugins.conf", complain, context);
    const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    char *path = NULL;
    if (base && *base) {
        path = text_format("%s/tieredcache/plugins.conf", base);
    } else if (home) {
        path = text_format("%s/.config/tieredcache/plugins.conf", home);
    }
    if (path) settings_read(given, path, complain, context);
    free(path);
    if (own) settings_read(given, own, complain, context);
    read_environment(given, complain, context);
}

void settings_begin(settings *given, settings_complaint complain, void *context) {
    settings_begin_with(given, NULL, complain, context);
}

void settings_end(settings *given) {
    free(given->directory);
    given->directory = NULL;
    text_empty(&given->exclude);
    text_empty(&given->headers);
    text_empty(&given->keys);
}

bool settings_take(const settings *given, const char *url) {
    if (!given->enabled || !url_is_http(url)) return false;
    for (size_t i = 0; i < given->exclude.count; i++)
        if (url_is_of(url, given->exclude.items[i])) return false;
    return true;
}

/* What holds for the host of url by a rule "HOST REST"; NULL where the rule is for another one. */
static const char *rest_of_rule(const char *rule, const char *url) {
    size_t count = strcspn(rule, " \t");
    char *host = strndup(rule, count);
    bool holds = host && url_is_of(url, host);
    free(host);
    return holds ? rule + count + strspn(rule + count, " \t") : NULL;
}

bool settings_fields(const settings *given, const char *url, text_list *fields) {
    for (size_t i = 0; i < given->headers.count; i++) {
        const char *field = rest_of_rule(given->headers.items[i], url);
        if (field && !text_add_whole(fields, field)) return false;
    }
    return true;
}

static bool is_word_of(const char *words, const char *word, size_t count) {
    while (*words) {
        size_t length = strcspn(words, " \t,");
        if (length == count && strncmp(words, word, count) == 0) return true;
        words += length + strspn(words + length, " \t,");
    }
    return false;
}

/* Leaves the named parameters out of the query of url, which is a string of the caller's. */
static void leave_out(char *url, const char *names) {
    char *query = strchr(url, '?');
    if (!query) return;
    char *end = strchr(query, '#');
    char *place = query + 1, *from = query + 1;
    char *stop = end ? end : query + strlen(query);
    while (from < stop) {
        char *next = memchr(from, '&', (size_t)(stop - from));
        size_t count = (size_t)((next ? next : stop) - from), name = strcspn(from, "=&#");
        if (!is_word_of(names, from, name)) {
            if (place > query + 1) *place++ = '&';
            memmove(place, from, count);
            place += count;
        }
        from = next ? next + 1 : stop;
    }
    if (place == query + 1) place = query;
    *place = 0; /* a fragment is never sent, and names nothing */
}

char *settings_key(const settings *given, const char *url) {
    char *key = NULL;
    for (size_t i = 0; i < given->keys.count; i++) {
        const char *names = rest_of_rule(given->keys.items[i], url);
        if (!names) continue;
        if (!key) key = strdup(url);
        if (key) leave_out(key, names);
    }
    return key;
}

int settings_open(const settings *given, tiered_log_fn log, void *context, tiered_cache **cache) {
    tiered_options options = {.size = sizeof options,
                              .directory = given->directory,
                              .memory_limit = given->memory_limit,
                              .disk_limit = given->disk_limit,
                              .log_level = given->log_level,
                              .log = log,
                              .log_context = context};
    if (tiered_abi() != TIERED_ABI) return TIERED_E_INVALID;
    return tiered_cache_open(&options, cache);
}

char *settings_proxied(tiered_cache *cache, const char *url) {
    if (tiered_proxy_start(cache) != TIERED_OK) return NULL;
    int64_t count = tiered_proxy_url(cache, url, NULL, 0);
    char *text = count > 0 ? malloc((size_t)count + 1) : NULL;
    if (text && tiered_proxy_url(cache, url, text, (size_t)count + 1) != count) {
        free(text);
        text = NULL;
    }
    return text;
}

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

/* The library knows what a rule is. */
static bool add_rule(settings *given, const char *name, const char *value, const char *place) {
    char *line = text_format("%s=%s", name, value);
    bool is_added = line && place && text_add(&given->rules, line);
    free(line);
    if (!is_added || text_add(&given->places, place)) return is_added;
    text_remove(&given->rules, given->rules.count - 1);
    return false;
}

static const char *const all_names[] = {"enabled", "directory", "memory_limit", "disk_limit",
                                        "exclude", "header",    "key",          "log"};
enum { name_count = sizeof all_names / sizeof *all_names };

/* The name as it is above; NULL where there is none. */
static const char *plain_name(const char *name) {
    for (size_t i = 0; i < name_count; i++) {
        const char *plain = all_names[i], *at = name;
        while (*at && *plain == (*at == '-' ? '_' : (char)tolower((unsigned char)*at))) plain++, at++;
        if (!*at && !*plain) return all_names[i];
    }
    return NULL;
}

/* `plain` is of all_names. */
static bool set(settings *given, const char *plain, const char *value, const char *place) {
    if (strcmp(plain, "enabled") == 0) return set_flag(&given->enabled, value);
    if (strcmp(plain, "directory") == 0) return set_directory(&given->directory, value);
    if (strcmp(plain, "memory_limit") == 0) return set_size(&given->memory_limit, value);
    if (strcmp(plain, "disk_limit") == 0) return set_size(&given->disk_limit, value);
    if (strcmp(plain, "log") == 0) return set_level(&given->log_level, value);
    return add_rule(given, plain, value, place);
}

bool settings_set(settings *given, const char *name, const char *value) {
    const char *plain = plain_name(name);
    char *place = plain ? text_format("the option '%s'", plain) : NULL;
    bool is_set = place && set(given, plain, value, place);
    free(place);
    return is_set;
}

/* Tells where a setting is that cannot be used: nothing of what it says, which may be a password. */
static void complain_of(settings_complaint complain, void *context, const char *place) {
    char *text = text_format("%s cannot be used", place ? place : "a setting");
    if (text && complain) complain(context, text);
    free(text);
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
    for (size_t number = 1; getline(&line, &room, file) >= 0; number++) {
        char *name = trimmed(line), *value = strchr(name, '=');
        if (!*name || *name == '#') continue;
        if (value) *value++ = 0;
        const char *plain = value ? plain_name(trimmed(name)) : NULL;
        char *place = plain ? text_format("%s, line %zu: '%s'", path, number, plain)
                            : text_format("%s, line %zu", path, number);
        if (!plain || !set(given, plain, trimmed(value), place)) complain_of(complain, context, place);
        free(place);
    }
    free(line);
    fclose(file);
}

static void read_environment(settings *given, settings_complaint complain, void *context) {
    for (size_t i = 0; i < name_count; i++) {
        char *name = text_format("TIEREDCACHE_%s", all_names[i]);
        for (char *at = name; at && *at; at++) *at = (char)toupper((unsigned char)*at);
        const char *value = name ? getenv(name) : NULL;
        if (value && !set(given, all_names[i], value, name)) complain_of(complain, context, name);
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
    text_empty(&given->rules);
    text_empty(&given->places);
}

void settings_rule(settings *given, tiered_cache *cache, settings_complaint complain, void *context) {
    text_list *rules = &given->rules;
    for (;;) {
        int64_t taken = tiered_host_rules(cache, (const char *const *)rules->items, rules->count);
        if (taken < 0) complain_of(complain, context, "any rule for hosts");
        if (taken < 0 || (size_t)taken >= rules->count) return;
        complain_of(complain, context, given->places.items[taken]);
        text_remove(rules, (size_t)taken);
        text_remove(&given->places, (size_t)taken);
    }
}

int settings_open(settings *given, tiered_log_fn log, void *log_context, settings_complaint complain, void *context,
                  tiered_cache **cache) {
    tiered_options options = {.size = sizeof options,
                              .directory = given->directory,
                              .memory_limit = given->memory_limit,
                              .disk_limit = given->disk_limit,
                              .log_level = given->log_level,
                              .log = log,
                              .log_context = log_context};
    if (tiered_abi() != TIERED_ABI) return TIERED_E_INVALID;
    int status = tiered_cache_open(&options, cache);
    if (status == TIERED_OK) settings_rule(given, *cache, complain, context);
    return status;
}

bool settings_take(const settings *given, tiered_cache *cache, const char *url) {
    tiered_request request = {.size = sizeof request, .url = url};
    tiered_stream *stream = NULL;
    if (!given->enabled || tiered_stream_new(cache, &request, &stream) != TIERED_OK) return false;
    tiered_stream_release(stream);
    return true;
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

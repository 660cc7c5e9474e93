#!/usr/bin/env python3
"""Writes a program in C that passes NULL for each pointer of each function of the header, one at a time.

    nulls.py HEADER >nulls.c; cc nulls.c ...; nulls URL

All other arguments are good, so that it is the NULL which is looked at. Each such call gives TIERED_E_INVALID, NULL or
false, or nothing; what the header allows to be NULL is listed here with what it gives.
"""
import re
import sys

# Function and parameter that may be NULL, and what the call gives.
ALLOWED = {
    ("tiered_cache_open", "options"): "TIERED_OK",
    ("tiered_pin", "key"): "TIERED_OK",
    ("tiered_remove", "key"): "TIERED_OK",
    ("tiered_file_path", "key"): "result > 0 ? result : 1",
}
GOOD = {
    "tiered_cache *cache": "cache", "tiered_stream *stream": "stream", "tiered_job *job": "job",
    "tiered_agent *agent": "agent", "tiered_agent **agent": "&made_agent",
    "const tiered_agent_options *options": "&agent_options", "const tiered_download *download": "&download",
    "tiered_download_info *info": "&download_info", "const char *const *fields": "&no_line", "int32_t milliseconds": "0",
    "tiered_cache **cache": "&made_cache", "tiered_stream **stream": "&made_stream", "tiered_job **job": "&made_job",
    "tiered_job **jobs": "made_jobs", "const tiered_options *options": "&options",
    "const tiered_request *request": "&request", "tiered_statistics *statistics": "&statistics",
    "tiered_job_info *info": "&info", "void *buffer": "text", "char *buffer": "text", "int64_t *bounds": "bounds",
    "const char *name": '"ETag"', "const char *url": "url", "const char *key": "NULL",
    "const char *identifier": "identifier", "const char *const *urls": "&url", "const char *const *rules": "&rule", "size_t count": "1",
    "size_t pairs": "1", "int64_t offset": "0", "int64_t bytes_each": "0", "int64_t milliseconds": "-1",
    "int whence": "0", "bool pinned": "false",
}
RELEASE = {"&made_cache": "tiered_cache_release(made_cache); made_cache = NULL;",
           "&made_stream": "tiered_stream_release(made_stream); made_stream = NULL;",
           "&made_job": "tiered_job_release(made_job); made_job = NULL;"}

header = re.sub(r"/\*.*?\*/", "", open(sys.argv[1]).read(), flags=re.S)
functions = re.findall(r"^(\w[\w ]*?\*?)\s*(tiered_\w+)\(([^()]*)\);", header, flags=re.M)
functions.sort(key=lambda function: function[1] == "tiered_remove")  # The film is needed until then.
print("""#include <stdio.h>
#include <tieredcache.h>

static int calls, failures;

static void gives(const char *call, long long expected, long long result) {
    calls++;
    if (result == expected) return;
    failures++;
    fprintf(stderr, "nulls: FAILED: %s gives %lld, not %lld\\n", call, result, expected);
}

int main(int argc, char **argv) {
    if (argc != 2) return 64;
    const char *url = argv[1], *rule = "exclude=h.invalid";
    char text[64], identifier[32];
    int64_t bounds[2];
    long long result;
    tiered_cache *cache = NULL, *made_cache = NULL;
    tiered_stream *stream = NULL, *made_stream = NULL;
    tiered_job *job = NULL, *made_job = NULL, *made_jobs[1] = {NULL};
    /* No agent runs: its functions get NULL for it, beside the NULL that is looked at. */
    tiered_agent *agent = NULL, *made_agent = NULL;
    const char *no_line = NULL;
    tiered_agent_options agent_options = {.size = sizeof agent_options, .session = "nulls", .program = "/none"};
    tiered_download download = {.size = sizeof download, .urls = &url};
    tiered_download_info download_info = {.size = sizeof download_info};
    tiered_options options = {.size = sizeof options, .directory = ""};
    tiered_request request = {.size = sizeof request, .url = url};
    tiered_statistics statistics = {.size = sizeof statistics};
    tiered_job_info info = {.size = sizeof info};
    (void)made_jobs, (void)made_agent;
    gives("tiered_cache_open", 0, tiered_cache_open(NULL, &cache));
    gives("tiered_stream_new", 0, tiered_stream_new(cache, &request, &stream));
    gives("tiered_job_start", 0, tiered_job_start(cache, &request, &job));
    tiered_job_identifier(job, identifier, sizeof identifier);
    gives("tiered_read_full_at", 1, tiered_read_full_at(stream, 0, text, 1));
    do gives("tiered_job_status", 0, tiered_job_status(job, &info)); while (info.state != TIERED_JOB_FINISHED);
    gives("tiered_proxy_start", 0, tiered_proxy_start(cache));""")
count = 0
for kind, name, parameters in functions:
    listed = [part.strip() for part in re.sub(r"\s+", " ", parameters).split(",")]
    for place, parameter in enumerate(listed):
        if "*" not in parameter:
            continue
        values = ["NULL" if other == place else GOOD[good] for other, good in enumerate(listed)]
        call = f"{name}({', '.join(values)})"
        allowed = ALLOWED.get((name, parameter.split("*")[-1]))
        made = " ".join(RELEASE[value] for value in values if value in RELEASE)
        count += 1
        if kind == "void":
            print(f"    {call}; calls++;")
        else:
            expected = allowed or ("0" if kind.endswith("*") or kind == "bool" else "TIERED_E_INVALID")
            print(f"    result = (long long)(intptr_t){call};")
            print(f'    gives("{call.replace(chr(34), chr(39))}", {expected}, result);{" " if made else ""}{made}')
print(f"""    tiered_job_release(job);
    tiered_stream_release(stream);
    tiered_cache_release(cache);
    printf("nulls: {count} pointers were NULL, %d calls gave something else than they promise\\n", failures);
    return failures || calls < {count} ? 1 : 0;
}}""")
if count < 75 or {name for _, name, _ in functions} != set(re.findall(r"\b(tiered_\w+)\(", header)):
    sys.exit("nulls.py does not read the header")

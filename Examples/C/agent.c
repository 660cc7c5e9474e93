/* Downloads a file by a process that goes on when this one has ended, and is told what it has missed. What it has begun
 * and not seen the end of, it sees at the next start.
 *
 *   cc agent.c $(pkg-config --cflags --libs tieredcache) -o agent
 *   ./agent /home/me/Films https://example.com/film.mp4
 */
#include <stdio.h>
#include <tieredcache.h>

static int failed(tiered_agent *agent) {
    char text[512];
    int status = tiered_agent_error(agent, text, sizeof text);
    return fprintf(stderr, "agent: %s\n", status < 0 ? text : tiered_status_text(status)), 1;
}

int main(int argc, char **argv) {
    tiered_agent *agent;
    tiered_agent_options options = {.size = sizeof options, .session = "org.example.player"};
    if (argc != 3) return fprintf(stderr, "usage: %s DIRECTORY URL\n", argv[0]), 64;
    int status = tiered_agent_open(&options, &agent); /* starts the program tieredcache, where it does not run */
    if (status != TIERED_OK) return fprintf(stderr, "agent: %s\n", tiered_status_text(status)), 1;

    char directory[4096];
    snprintf(directory, sizeof directory, "dir=%s", argv[1]);
    const char *urls[] = {argv[2], NULL}, *lines[] = {directory, NULL};
    tiered_download download = {.size = sizeof download, .urls = urls, .options = lines};
    if (tiered_agent_add(agent, &download, NULL, 0) < 0) return failed(agent);

    tiered_download_info info = {.size = sizeof info};
    char text[4096]; /* the path of the file, or why there is none */
    for (int open = 1; open > 0;) {
        if (tiered_agent_next(agent, -1, &info, text, sizeof text) != TIERED_OK) return failed(agent);
        printf("%s: %lld bytes\n", info.identifier, (long long)info.bytes);
        if (info.state < TIERED_JOB_CANCELLED) continue;
        printf("%s %s\n", info.state == TIERED_JOB_FINISHED ? "stored as" : "failed:", text);
        if (tiered_agent_acknowledge(agent, info.identifier) != TIERED_OK) return failed(agent);
        open--;
    }
    tiered_agent_release(agent);
    return 0;
}

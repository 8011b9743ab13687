#include "input.h"
#include "message.h"
#include "numbers.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reads fd to its end. */
static int read_all(int fd, const char *name, char **text, size_t *n) {
    size_t room = 1 << 16, used = 0;
    char *data = malloc(room);
    while (data) {
        ssize_t got = read(fd, data + used, room - used - 1);
        if (got < 0) {
            int code = fail("%s: %s", name, strerror(errno));
            free(data);
            return code;
        }
        if (got == 0) {
            data[used] = 0;
            *text = data;
            *n = used;
            return CLI_OK;
        }
        used += (size_t)got;
        if (room - used < 2) {
            char *more = room <= SIZE_MAX / 2 ? realloc(data, room *= 2) : NULL;
            if (!more) free(data);
            data = more;
        }
    }
    return fail("%s: out of memory after %zu bytes", name, used);
}

int input_file(const char *path, char **text, size_t *n) {
    if (!strcmp(path, "-")) return read_all(STDIN_FILENO, "standard input", text, n);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return fail("%s: %s", path, strerror(errno));
    int code = read_all(fd, path, text, n);
    close(fd);
    return code;
}

int input_ids(const char *option, const char *list, int32_t **ids, size_t *n) {
    char *text = NULL;
    size_t length = 0, count = 0;
    uint64_t *wide = NULL;
    int code = CLI_OK;
    if (*list == '@') {
        option = list + 1;
        code = input_file(option, &text, &length);
        if (!code && strlen(text) != length) code = fail_usage("%s: a zero byte is no part of a list of ids", option);
    }
    if (!code) code = number_list(option, text ? text : list, 0, INT32_MAX, &wide, &count);
    free(text);
    if (code) return code;
    int32_t *out = malloc(count * sizeof *out);
    if (!out) code = fail("%s: out of memory", option);
    for (size_t i = 0; out && i < count; i++) out[i] = (int32_t)wide[i];
    free(wide);
    if (code) return code;
    *ids = out;
    *n = count;
    return CLI_OK;
}

int input_check_ids(const char *option, const int32_t *ids, size_t n, uint32_t vocab) {
    for (size_t i = 0; i < n; i++) {
        if (ids[i] >= 0 && (uint32_t)ids[i] < vocab) continue;
        say("%s: id %" PRId32 " at place %zu is outside the model's vocabulary of %" PRIu32, option ? option : "prompt",
            ids[i], i + 1, vocab);
        return option ? CLI_USAGE : CLI_FAILED;
    }
    return CLI_OK;
}

#include "config.h"

#include "output.h"
#include "message.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int stdout_failed(void) {
    static bool said; /* the reason is said once, however many writes fail */
    if (errno != EPIPE && !said) say("standard output: %s", strerror(errno));
    said = true;
    return CLI_FAILED;
}

int output_text(const char *text, size_t length) {
    return fwrite(text, 1, length, stdout) == length ? CLI_OK : stdout_failed();
}

int output_flush(void) {
    return fflush(stdout) == 0 && !ferror(stdout) ? CLI_OK : stdout_failed();
}

/* What a signal has to remove.  Set before the handlers are and cleared after. */
static const char *volatile doomed;

static void remove_and_die(int signal_number) {
    const char *path = doomed;
    if (path) unlink(path);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void set_handlers(void (*handler)(int)) {
    struct sigaction action = {.sa_handler = handler};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

/* "DIR/.NAME.XXXXXX" for "DIR/NAME", made and open. */
static int open_temporary(struct output_file *f) {
    const char *slash = strrchr(f->path, '/');
    int dir = slash ? (int)(slash - f->path) + 1 : 0;
    if (asprintf(&f->temporary, "%.*s.%s.XXXXXX", dir, f->path, f->path + dir) < 0) {
        f->temporary = NULL;
        errno = ENOMEM;
        return -1;
    }
    int fd = mkostemp(f->temporary, O_CLOEXEC);
    if (fd < 0) return -1;
    mode_t mask = umask(0);
    umask(mask);
    fchmod(fd, 0666 & ~mask);
    doomed = f->temporary;
    set_handlers(remove_and_die);
    return fd;
}

int output_file_open(struct output_file *f, const char *path) {
    struct stat st;
    bool exists = stat(path, &st) == 0;
    *f = (struct output_file){.fd = -1};
    if (!*path) return fail_usage("--out: the name is empty");
    /* A link stays a link: its target is what is replaced. */
    f->path = exists && S_ISREG(st.st_mode) ? realpath(path, NULL) : strdup(path);
    if (!f->path) return fail("%s: %s", path, strerror(errno));
    bool in_place = exists && !S_ISREG(st.st_mode);
    f->fd = in_place ? open(path, O_WRONLY | O_CLOEXEC) : open_temporary(f);
    if (f->fd >= 0) return CLI_OK;
    int code = fail("%s: cannot be written: %s", path, strerror(errno));
    free(f->temporary);
    f->temporary = NULL;
    output_file_drop(f);
    return code;
}

int output_file_write(struct output_file *f, const void *data, size_t bytes) {
    const char *at = data;
    while (bytes) {
        size_t most = bytes < (size_t)1 << 30 ? bytes : (size_t)1 << 30;
        ssize_t wrote = write(f->fd, at, most);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) return fail("%s: %s", f->path, strerror(errno));
        at += wrote;
        bytes -= (size_t)wrote;
    }
    return CLI_OK;
}

/* Closes what is open; returns whether that went well. */
static bool release(struct output_file *f) {
    bool ok = f->fd < 0 || close(f->fd) == 0;
    if (f->temporary) {
        set_handlers(SIG_DFL);
        doomed = NULL;
    }
    f->fd = -1;
    free(f->temporary);
    free(f->path);
    f->temporary = f->path = NULL;
    return ok;
}

int output_file_finish(struct output_file *f) {
    bool ok = true;
    if (f->temporary) ok = fsync(f->fd) == 0 && rename(f->temporary, f->path) == 0;
    if (!ok) {
        int code = fail("%s: %s", f->path, strerror(errno));
        output_file_drop(f);
        return code;
    }
    return release(f) ? CLI_OK : fail("the output could not be closed: %s", strerror(errno));
}

void output_file_drop(struct output_file *f) {
    if (f->temporary) unlink(f->temporary);
    release(f);
}

#include "base/file.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes: files of text that are read whole have a few megabytes.  A larger one is a mistake, or sparse. */
#define TEXT_MAX ((uint64_t)256 << 20)

bool k3_file_exists(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0 || errno != ENOENT;
}

k3_status k3_file_open(const char *path, int *fd, uint64_t *size, k3_error *err) {
    struct stat st;
    int f = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not make us wait */
    if (f < 0) return k3_fail(err, K3_ERR_IO, "%s: %s", path, strerror(errno));
    if (fstat(f, &st) || !S_ISREG(st.st_mode)) {
        close(f);
        return k3_fail(err, K3_ERR_IO, "%s: not a regular file", path);
    }
    *fd = f;
    *size = (uint64_t)st.st_size;
    return K3_OK;
}

k3_status k3_file_read(int fd, const char *path, uint64_t offset, void *out, size_t bytes, k3_error *err) {
    for (size_t done = 0; done < bytes;) {
        ssize_t n = pread(fd, (char *)out + done, bytes - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return k3_fail(err, K3_ERR_IO, "%s: %s", path, strerror(errno));
        if (n == 0)
            return k3_fail(err, K3_ERR_IO, "%s: ends at byte %llu, %zu more are needed", path,
                           (unsigned long long)(offset + done), bytes - done);
        done += (size_t)n;
    }
    return K3_OK;
}

k3_status k3_file_read_text(const char *path, char **text, size_t *length, k3_error *err) {
    int fd;
    uint64_t size;
    k3_status status = k3_file_open(path, &fd, &size, err);
    if (status) return status;
    char *p = NULL;
    if (size > TEXT_MAX)
        status = k3_fail(err, K3_ERR_FORMAT, "%s: %llu bytes are too many", path, (unsigned long long)size);
    else if (!(p = malloc((size_t)size + 1)))
        status = k3_fail(err, K3_ERR_MEMORY, "%s: out of memory for %llu bytes", path, (unsigned long long)size);
    else status = k3_file_read(fd, path, 0, p, (size_t)size, err);
    close(fd);
    if (status) {
        free(p);
        return status;
    }
    p[size] = 0;
    *text = p;
    *length = (size_t)size;
    return K3_OK;
}

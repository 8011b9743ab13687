/* Errors, checked sizes, threads, cgroups and files. */
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/threads.h"
#include "base/topology.h"

#include <check.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

START_TEST(error_text_is_one_line) {
    k3_error err;
    char longer[3000];
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = 0;
    ck_assert_int_eq(k3_fail(&err, K3_ERR_IO, "a\nb\tc\x1b"), K3_ERR_IO);
    ck_assert_str_eq(k3_error_text(&err), "a?b?c?");
    ck_assert_int_eq(k3_fail(NULL, K3_ERR_IO, "x"), K3_ERR_IO);
    k3_fail(&err, K3_ERR_FORMAT, "%s", longer);
    ck_assert_uint_eq(strlen(err.text), sizeof err.text - 1);
    k3_fail(&err, K3_ERR_FORMAT, "inner");
    ck_assert_int_eq(k3_fail_prefix(&err, K3_ERR_IO, "outer %d", 1), K3_ERR_FORMAT);
    ck_assert_str_eq(err.text, "outer 1: inner");
    ck_assert_str_eq(k3_error_text(NULL), "");
    for (int i = 0; i < 12; i++) ck_assert(k3_status_name((k3_status)i)[0] != 0);
}
END_TEST

START_TEST(sizes_are_checked) {
    size_t n;
    uint64_t m;
    ck_assert(!k3_mul(SIZE_MAX / 2, 3, &n) && !k3_add(SIZE_MAX, 1, &n));
    ck_assert(!k3_mul64(UINT64_MAX / 2, 3, &m) && !k3_add64(UINT64_MAX, 1, &m));
    ck_assert_ptr_null(k3_array(SIZE_MAX / 2, 4));
    unsigned char *p = k3_map(3 << 20);
    ck_assert(p && (uintptr_t)p % K3_ALIGN == 0 && p[0] == 0 && p[(3 << 20) - 1] == 0);
    k3_unmap(p, 3 << 20);
}
END_TEST

START_TEST(shares_cover_everything_once) {
    for (size_t n = 0; n < 70; n++)
        for (size_t grain = 1; grain < 9; grain += 3)
            for (int size = 1; size < 12; size++) {
                size_t next = 0;
                for (int rank = 0; rank < size; rank++) {
                    size_t begin, end;
                    struct k3_team team = {rank, size, NULL};
                    k3_team_share(&team, n, grain, &begin, &end);
                    ck_assert_uint_eq(begin, next);
                    ck_assert(end >= begin && (end == n || end % grain == 0));
                    next = end;
                }
                ck_assert_uint_eq(next, n);
            }
}
END_TEST

static _Atomic int arrived, wrong;

/* After each barrier all threads must have arrived. */
static void meet(struct k3_team *team, void *arg) {
    (void)arg;
    for (int round = 1; round <= 200; round++) {
        atomic_fetch_add(&arrived, 1);
        k3_team_barrier(team);
        if (atomic_load(&arrived) < round * team->size) atomic_store(&wrong, 1);
        k3_team_barrier(team);
    }
}

/* arg: whether the team is called from one of several threads, and so must be alone. */
static void inner(struct k3_team *team, void *arg) {
    if (team->rank >= team->size || (arg && team->size != 1)) atomic_store(&wrong, 1);
    k3_team_barrier(team);
}

static void outer(struct k3_team *team, void *arg) {
    (void)arg;
    k3_team_run(2, inner, team->size > 1 ? team : NULL);
}

START_TEST(teams_meet_and_nest) {
    static const int sizes[] = {1, 2, 3, 8};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        atomic_store(&arrived, 0);
        k3_team_run(sizes[i], meet, NULL);
        k3_team_run(sizes[i], outer, NULL);
    }
    int any = atomic_load(&wrong);
    ck_assert_int_eq(any, 0);
    ck_assert_int_ge(k3_threads_default(), 1);
    ck_assert_int_le(k3_threads_default(), k3_cores_allowed());
    ck_assert(k3_memory_available() > 1 << 20);
}
END_TEST

/* A file below a false root, its directories made as needed. */
static void put(const char *root, const char *path, const char *text) {
    char full[512];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        mkdir(full, 0700);
        *p = '/';
    }
    FILE *f = fopen(full, "w");
    ck_assert_msg(f != NULL, "%s", full);
    fputs(text, f);
    fclose(f);
}

START_TEST(cgroups) {
    static const char v2[] = "0::/a/b\n", v1[] = "5:memory:/box\n4:cpu,cpuacct:/box\n0::/\n", none[] = "";
    char root[] = "/tmp/k3-test-XXXXXX", command[64];
    ck_assert_ptr_nonnull(mkdtemp(root));
    ck_assert_int_eq(k3_cgroup_cpus(root, v2), INT_MAX); /* no files: no limits */
    ck_assert_uint_eq(k3_cgroup_memory(root, none), UINT64_MAX);
    put(root, "/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    ck_assert_int_eq(k3_cgroup_cpus(root, v2), INT_MAX);
    put(root, "/sys/fs/cgroup/a/cpu.max", "350000 100000\n"); /* the level above is tighter */
    ck_assert_int_eq(k3_cgroup_cpus(root, v2), 3);
    put(root, "/sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
    ck_assert_int_eq(k3_cgroup_cpus(root, v2), 1); /* rounded down, but never to nothing */
    put(root, "/sys/fs/cgroup/a/b/cpu.max", "nonsense\n");
    ck_assert_int_eq(k3_cgroup_cpus(root, v2), 3);
    put(root, "/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "-1\n");
    put(root, "/sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n");
    ck_assert_int_eq(k3_cgroup_cpus(root, v1), INT_MAX);
    put(root, "/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "199999\n");
    ck_assert_int_eq(k3_cgroup_cpus(root, v1), 1);
    put(root, "/sys/fs/cgroup/a/memory.max", "1000000\n");
    put(root, "/sys/fs/cgroup/a/memory.current", "900000\n");
    put(root, "/sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 300000\nactive_file 100000\n");
    ck_assert_uint_eq(k3_cgroup_memory(root, v2), 500000);
    put(root, "/sys/fs/cgroup/a/memory.current", "2000000\n");
    ck_assert_uint_eq(k3_cgroup_memory(root, v2), 0);
    put(root, "/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "5000\n");
    put(root, "/sys/fs/cgroup/memory/box/memory.usage_in_bytes", "2000\n");
    ck_assert_uint_eq(k3_cgroup_memory(root, v1), 3000);
    put(root, "/proc/meminfo", "MemTotal: 9 kB\nMemAvailable:    7 kB\n");
    ck_assert_uint_eq(k3_meminfo_available(root), 7 * 1024);
    snprintf(command, sizeof command, "rm -r %s", root);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

START_TEST(files) {
    k3_error err;
    char *text, path[] = "/tmp/k3-test-XXXXXX", small[4];
    size_t n;
    uint64_t size;
    int fd = mkstemp(path);
    ck_assert(fd >= 0 && write(fd, "hello", 5) == 5);
    close(fd);
    ck_assert(k3_file_exists(path) && !k3_file_exists("/nowhere/at/all"));
    ck_assert_int_eq(k3_file_read_text(path, &text, &n, &err), K3_OK);
    ck_assert(n == 5 && !strcmp(text, "hello"));
    free(text);
    ck_assert_int_eq(k3_file_open(path, &fd, &size, &err), K3_OK);
    ck_assert_int_eq(k3_file_read(fd, path, 3, small, 2, &err), K3_OK);
    ck_assert_int_eq(k3_file_read(fd, path, 3, small, 3, &err), K3_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.text, path));
    close(fd);
    unlink(path);
    ck_assert_int_eq(k3_file_read_text("/tmp", &text, &n, &err), K3_ERR_IO);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(k3_file_read_text(path, &text, &n, &err), K3_ERR_IO);
    unlink(path);
}
END_TEST

int main(void) {
    Suite *s = suite_create("base");
    TCase *t = tcase_create("base");
    tcase_add_test(t, error_text_is_one_line);
    tcase_add_test(t, sizes_are_checked);
    tcase_add_test(t, shares_cover_everything_once);
    tcase_add_test(t, teams_meet_and_nest);
    tcase_add_test(t, cgroups);
    tcase_add_test(t, files);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

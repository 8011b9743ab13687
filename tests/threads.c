/* Teams, their barrier, and how many threads are the default: on machines that are not there, too. */
#include "config.h"

#include "base/barrier.h"
#include "base/threads.h"
#include "base/topology.h"

#include <check.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 8, ROUNDS = 2000 };

struct meeting {
    struct k3_barrier barrier;
    int size, wrong;
    int said[MOST]; /* plain: the barrier alone orders what is written and read */
};

struct guest {
    struct meeting *meeting;
    int rank;
    pthread_t thread;
};

static void *attend(void *arg) {
    struct guest *g = arg;
    struct meeting *m = g->meeting;
    int wrong = 0;
    for (int round = 1; round <= ROUNDS; round++) {
        m->said[g->rank] = round;
        k3_barrier_wait(&m->barrier, m->size);
        for (int i = 0; i < m->size; i++) wrong += m->said[i] != round;
        k3_barrier_wait(&m->barrier, m->size);
    }
    m->said[g->rank] = wrong;
    return NULL;
}

static int meet(int spins, unsigned generation, int size) {
    struct meeting m = {.barrier = {.spins = spins, .generation = generation}, .size = size};
    struct guest guests[MOST];
    int wrong = 0;
    for (int i = 0; i < size; i++) {
        guests[i] = (struct guest){.meeting = &m, .rank = i};
        ck_assert_int_eq(pthread_create(&guests[i].thread, NULL, attend, &guests[i]), 0);
    }
    for (int i = 0; i < size; i++) {
        pthread_join(guests[i].thread, NULL);
        wrong += m.said[i];
    }
    return wrong;
}

START_TEST(barrier_orders_plain_writes) {
    static const int sizes[] = {1, 2, 3, MOST};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        ck_assert_int_eq(meet(0, 0, sizes[i]), 0); /* every wait goes through the kernel */
        ck_assert_int_eq(meet(k3_barrier_for(sizes[i], MOST).spins, 0, sizes[i]), 0);
        ck_assert_int_eq(meet(20, UINT_MAX - ROUNDS, sizes[i]), 0); /* the count overflows on the way */
    }
}
END_TEST

/* "0-3,8" as a set. */
static struct k3_cpus set_of(const char *list) {
    struct k3_cpus cpus = {0};
    char *end;
    for (const char *p = list; *p; p = *end ? end + 1 : end) {
        long first = strtol(p, &end, 10), last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        for (long cpu = first; cpu <= last; cpu++) k3_cpus_add(&cpus, (int)cpu);
    }
    return cpus;
}

START_TEST(sets_of_cpus) {
    struct k3_cpus cpus = set_of("0,63-64,8191");
    k3_cpus_add(&cpus, -1);
    k3_cpus_add(&cpus, K3_CPUS);
    int n = 0;
    for (int cpu = -5; cpu < K3_CPUS + 5; cpu++) n += k3_cpus_has(&cpus, cpu);
    ck_assert_int_eq(n, 4);
    ck_assert(k3_cpus_has(&cpus, 63) && k3_cpus_has(&cpus, 64) && k3_cpus_has(&cpus, 8191));
}
END_TEST

START_TEST(cores_of_described_machines) {
#ifdef HAVE_HWLOC
    static const struct {
        const char *machine, *cpus;
        int cores;
    } cases[] = {
        {"pack:2 core:4 pu:2", "0-15", 8},     {"pack:2 core:4 pu:2", "0-1", 1},  {"pack:2 core:4 pu:2", "0,2,4", 3},
        {"pack:2 core:4 pu:2", "1,2", 2},      {"pack:2 core:4 pu:2", "100", 0},  {"numa:2 core:96 pu:2", "0-383", 192},
        {"numa:2 core:96 pu:2", "192-383", 96}, {"core:3 pu:1", "0-2", 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct k3_cpus cpus = set_of(cases[i].cpus);
        ck_assert_msg(k3_hwloc_cores(cases[i].machine, &cpus) == cases[i].cores, "%s, CPUs %s", cases[i].machine,
                      cases[i].cpus);
    }
#else
    struct k3_cpus cpus = set_of("0-3");
    ck_assert_int_eq(k3_hwloc_cores("core:2 pu:2", &cpus), 0);
#endif
}
END_TEST

static char root[32];

static void make_root(void) {
    strcpy(root, "/tmp/k3-threads-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static void remove_root(void) {
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", root);
    ck_assert_int_eq(system(command), 0);
}

/* A file below the false root, its directories made as needed. */
static void put(const char *path, const char *text) {
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

static void put_siblings(int cpu, const char *text) {
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    put(path, text);
}

START_TEST(cores_from_sys) {
    struct k3_cpus four = set_of("0-3"), half = set_of("0,2"), none = {0};
    ck_assert_int_eq(k3_sysfs_cores(root, &four), 4); /* nothing known: each CPU is a core */
    put_siblings(0, "0,2\n");
    put_siblings(2, "0,2\n");
    ck_assert_int_eq(k3_sysfs_cores(root, &four), 3);
    put_siblings(1, "1-3\n");
    put_siblings(3, "1-3\n");
    ck_assert_int_eq(k3_sysfs_cores(root, &four), 2);
    ck_assert_int_eq(k3_sysfs_cores(root, &half), 1);
    ck_assert_int_eq(k3_sysfs_cores(root, &none), 0);
    put_siblings(1, "");
    put_siblings(3, "99999999999\n");
    ck_assert_int_eq(k3_sysfs_cores(root, &four), 3); /* what is no number is not believed */
    put_siblings(1, "-1\n");
    ck_assert_int_eq(k3_sysfs_cores(root, &four), 3);
}
END_TEST

START_TEST(quotas) {
    static const char both[] = "3:cpuset:/\n2:cpu,cpuacct:/a/b\n1:memory:/a\n0::/user\n";
    put("/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "450000\n"); /* no link cpu -> cpu,cpuacct */
    put("/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n");
    ck_assert_int_eq(k3_cgroup_cpus(root, both), 4);
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n"); /* the topmost is all that a container sees */
    put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    ck_assert_int_eq(k3_cgroup_cpus(root, both), 1);
    put("/sys/fs/cgroup/unified/x/cpu.max", "250000 100000\n");
    ck_assert_int_eq(k3_cgroup_cpus(root, "0::/x/y/z\n"), 2);
    ck_assert_int_eq(k3_cgroup_cpus(root, "5:cpuset:/x\n"), INT_MAX);
    put("/sys/fs/cgroup/cpu.max", "99999999999999999999999 100000\n"); /* more than 64 bits: no limit */
    ck_assert_int_eq(k3_cgroup_cpus(root, "0::/"), INT_MAX);
    put("/sys/fs/cgroup/cpu.max", "300000 0\n");
    ck_assert_int_eq(k3_cgroup_cpus(root, "0::/"), INT_MAX);
    put("/sys/fs/cgroup/cpu.max", "300000\n");
    ck_assert_int_eq(k3_cgroup_cpus(root, "0::/"), INT_MAX);
    put("/sys/fs/cgroup/cpu.max", "300000 100000\n");
    static const char *const odd[] = {"0::", "0::/", "0::nothing", "0::/../x", "0::/a//b/", "0::/", "0:::"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) ck_assert_int_eq(k3_cgroup_cpus(root, odd[i]), 3);
    static const char *const bad[] = {"", "\n\n", "0:", "nonsense", ":", "7"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) ck_assert_int_eq(k3_cgroup_cpus(root, bad[i]), INT_MAX);
}
END_TEST

START_TEST(memory_of_groups) {
    put("/sys/fs/cgroup/a/memory.max", "max\n");
    put("/sys/fs/cgroup/a/memory.current", "1000\n");
    ck_assert_uint_eq(k3_cgroup_memory(root, "0::/a\n"), UINT64_MAX);
    put("/sys/fs/cgroup/a/memory.high", "5000\n");
    ck_assert_uint_eq(k3_cgroup_memory(root, "0::/a\n"), 4000);
    put("/sys/fs/cgroup/a/memory.max", "4000\n");
    ck_assert_uint_eq(k3_cgroup_memory(root, "0::/a/b\n"), 3000);
    put("/sys/fs/cgroup/memory.max", "2500\n");
    put("/sys/fs/cgroup/memory.current", "2000\n");
    put("/sys/fs/cgroup/memory.stat", "file 9\nactive_file 100\nworkingset_inactive_file 7\ninactive_file 300\n");
    ck_assert_uint_eq(k3_cgroup_memory(root, "0::/a/b\n"), 900); /* the root is tightest; its cache can go */
    put("/sys/fs/cgroup/memory/c/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/memory/c/memory.usage_in_bytes", "4096\n");
    ck_assert_uint_ge(k3_cgroup_memory(root, "4:memory:/c\n0::/a\n"), UINT64_C(1) << 62);
    ck_assert_uint_eq(k3_meminfo_available(root), UINT64_MAX);
    put("/proc/meminfo", "MemAvailable: 12 kB\n");
    ck_assert_uint_eq(k3_meminfo_available(root), 12288);
}
END_TEST

/* What this program prints for `arg` when started with a setting in its environment. */
static int child(const char *setting, const char *arg) {
    char command[4096], self[2048] = "";
    ck_assert(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    snprintf(command, sizeof command, "%s '%s' %s", setting, self, arg);
    FILE *f = popen(command, "r");
    int value = -1;
    ck_assert(f && fscanf(f, "%d", &value) == 1);
    ck_assert_int_eq(pclose(f), 0);
    return value;
}

START_TEST(openmp_settings) {
    int cores = child("OMP_PROC_BIND=false", "cores"), threads = child("OMP_PROC_BIND=false", "threads");
    ck_assert_int_ge(cores, 1);
    ck_assert_int_le(threads, cores);
    /* binding threads to places takes nothing away from the process */
    ck_assert_int_eq(child("OMP_PROC_BIND=true", "cores"), cores);
    ck_assert_int_eq(child("OMP_PROC_BIND=close", "threads"), threads);
    ck_assert_int_eq(child("OMP_PLACES=cores", "threads"), threads);
    ck_assert_int_eq(child("OMP_NUM_THREADS=1", "threads"), 1);
    ck_assert_int_eq(child("OMP_NUM_THREADS=64", "threads"), threads); /* no more than cores by default */
}
END_TEST

START_TEST(affinity) {
    cpu_set_t mask, one;
    int cpu = 0;
    ck_assert_int_eq(sched_getaffinity(0, sizeof mask, &mask), 0);
    while (!CPU_ISSET(cpu, &mask)) cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    ck_assert_int_eq(child("OMP_PROC_BIND=true", "cores"), 1);
    ck_assert_int_eq(child("OMP_NUM_THREADS=8", "threads"), 1);
    ck_assert_int_eq(sched_setaffinity(0, sizeof mask, &mask), 0);
}
END_TEST

int main(int argc, char **argv) {
    if (argc > 1) {
        printf("%d\n", strcmp(argv[1], "cores") ? k3_threads_default() : k3_cores_allowed());
        return EXIT_SUCCESS;
    }
    Suite *s = suite_create("threads");
    TCase *t = tcase_create("threads"), *files = tcase_create("files");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, barrier_orders_plain_writes);
    tcase_add_test(t, sets_of_cpus);
    tcase_add_test(t, cores_of_described_machines);
    tcase_add_test(t, openmp_settings);
    tcase_add_test(t, affinity);
    tcase_add_checked_fixture(files, make_root, remove_root);
    tcase_add_test(files, cores_from_sys);
    tcase_add_test(files, quotas);
    tcase_add_test(files, memory_of_groups);
    suite_add_tcase(s, t);
    suite_add_tcase(s, files);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#include "config.h"

#include "base/topology.h"

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef HAVE_HWLOC
#include <hwloc.h>
#endif

#define PATH_SIZE 4096

/* A small file below root as text; false if it is not there. */
static bool read_small(const char *root, const char *path, char *out, size_t size) {
    char full[2 * PATH_SIZE];
    int n = snprintf(full, sizeof full, "%s%s", root, path);
    FILE *f = n >= 0 && (size_t)n < sizeof full ? fopen(full, "re") : NULL;
    if (!f) return false;
    size_t got = fread(out, 1, size - 1, f);
    fclose(f);
    out[got] = 0;
    return true;
}

/* A number at the start of text; "max" and what is no number are no limit. */
static uint64_t parse_limit(const char *text) {
    char *end;
    uint64_t v = strtoull(text, &end, 10);
    return end == text || *text == '-' ? UINT64_MAX : v;
}

/* The value of a line "KEY value" in a file such as memory.stat; 0 if it is not there. */
static uint64_t stat_value(const char *text, const char *key) {
    size_t n = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (!strncmp(line, key, n) && line[n] == ' ') return strtoull(line + n, NULL, 10);
    }
    return 0;
}

/* The group of this process under one controller. */
struct group {
    bool v2;
    const char *controller;
    char path[PATH_SIZE];
};

/* True if a comma-separated list holds the name. */
static bool list_has(const char *list, size_t length, const char *name) {
    size_t n = strlen(name);
    for (size_t at = 0; at + n <= length; at++)
        if (!strncmp(list + at, name, n) && (at == 0 || list[at - 1] == ',') && (at + n == length || list[at + n] == ','))
            return true;
    return false;
}

/* Lines are "ID:CONTROLLERS:PATH"; v2's has no controllers. */
static bool find_group(const char *self, const char *controller, struct group *g) {
    bool found = false;
    for (const char *line = self; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *a = strchr(line, ':'), *b = a ? strchr(a + 1, ':') : NULL;
        size_t end = strcspn(line, "\n");
        if (!b || b > line + end) continue;
        bool v2 = b == a + 1;
        if (!v2 && !list_has(a + 1, (size_t)(b - a - 1), controller)) continue;
        found = true;
        g->v2 = v2;
        g->controller = controller;
        snprintf(g->path, sizeof g->path, "%.*s", (int)(line + end - b - 1), b + 1);
        if (!v2) break; /* where both hierarchies exist, v1 has the controller */
    }
    return found;
}

/* Calls `visit` for the group and all above it; a container may see only the topmost. */
static void walk_from(const char *root, const char *mount, const struct group *g,
                      void (*visit)(const char *root, const char *dir, bool v2, void *out), void *out) {
    char dir[2 * PATH_SIZE], path[PATH_SIZE];
    memcpy(path, g->path, sizeof path);
    for (char *slash = path + strlen(path); slash; slash = strrchr(path, '/')) {
        *slash = 0;
        snprintf(dir, sizeof dir, "%s%s%s", mount, *path && *path != '/' ? "/" : "", path);
        visit(root, dir, g->v2, out);
    }
    if (*path) visit(root, mount, g->v2, out); /* a path without a slash at its start */
}

/* The usual places of the hierarchies; what is not there sets no limit. */
static void walk(const char *root, const struct group *g,
                 void (*visit)(const char *root, const char *dir, bool v2, void *out), void *out) {
    char mount[64];
    snprintf(mount, sizeof mount, "/sys/fs/cgroup/%s", g->v2 ? "unified" : g->controller);
    walk_from(root, mount, g, visit, out);
    if (g->v2) walk_from(root, "/sys/fs/cgroup", g, visit, out);
    else if (!strcmp(g->controller, "cpu")) walk_from(root, "/sys/fs/cgroup/cpu,cpuacct", g, visit, out);
}

static bool read_in(const char *root, const char *dir, const char *name, char *out, size_t size) {
    char path[3 * PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return read_small(root, path, out, size);
}

static void visit_cpu(const char *root, const char *dir, bool v2, void *out) {
    char text[256], more[256];
    uint64_t quota = UINT64_MAX, period = 0;
    if (v2 && read_in(root, dir, "cpu.max", text, sizeof text)) {
        quota = parse_limit(text);
        const char *blank = strchr(text, ' ');
        period = blank ? parse_limit(blank + 1) : 0;
    } else if (!v2 && read_in(root, dir, "cpu.cfs_quota_us", text, sizeof text) &&
               read_in(root, dir, "cpu.cfs_period_us", more, sizeof more)) {
        quota = parse_limit(text);
        period = parse_limit(more);
    }
    if (quota == UINT64_MAX || period == 0 || period == UINT64_MAX) return;
    uint64_t cpus = quota / period;
    int *least = out, n = cpus < 1 ? 1 : cpus > INT_MAX ? INT_MAX : (int)cpus;
    if (n < *least) *least = n;
}

int k3_cgroup_cpus(const char *root, const char *self) {
    struct group g;
    int least = INT_MAX;
    if (find_group(self, "cpu", &g)) walk(root, &g, visit_cpu, &least);
    return least;
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static void visit_memory(const char *root, const char *dir, bool v2, void *out) {
    char limit[64], usage[64], high[64], stat[8192] = "";
    if (!read_in(root, dir, v2 ? "memory.max" : "memory.limit_in_bytes", limit, sizeof limit) ||
        !read_in(root, dir, v2 ? "memory.current" : "memory.usage_in_bytes", usage, sizeof usage))
        return;
    uint64_t most = parse_limit(limit), used = parse_limit(usage);
    /* above memory.high v2 slows the process down until it is of no use */
    if (v2 && read_in(root, dir, "memory.high", high, sizeof high)) most = least(most, parse_limit(high));
    if (most == UINT64_MAX || used == UINT64_MAX) return;
    read_in(root, dir, "memory.stat", stat, sizeof stat);
    uint64_t cache = stat_value(stat, v2 ? "inactive_file" : "total_inactive_file") +
                     stat_value(stat, v2 ? "active_file" : "total_active_file");
    used -= cache < used ? cache : used;
    uint64_t *left = out;
    *left = least(*left, most > used ? most - used : 0);
}

uint64_t k3_cgroup_memory(const char *root, const char *self) {
    struct group g;
    uint64_t left = UINT64_MAX;
    if (find_group(self, "memory", &g)) walk(root, &g, visit_memory, &left);
    return left;
}

uint64_t k3_meminfo_available(const char *root) {
    char text[8192];
    if (!read_small(root, "/proc/meminfo", text, sizeof text)) return UINT64_MAX;
    const char *line = strstr(text, "MemAvailable:");
    return line ? strtoull(line + strlen("MemAvailable:"), NULL, 10) * 1024 : UINT64_MAX;
}

static uint64_t address_space_left(void) {
    struct rlimit limit;
    char text[256];
    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
    if (!read_small("", "/proc/self/statm", text, sizeof text)) return limit.rlim_cur;
    uint64_t used = strtoull(text, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
    return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

uint64_t k3_memory_available(void) {
    char self[8192];
    uint64_t left = least(k3_meminfo_available(""), address_space_left());
    if (read_small("", "/proc/self/cgroup", self, sizeof self)) left = least(left, k3_cgroup_memory("", self));
    return left;
}

void k3_cpus_add(struct k3_cpus *cpus, int cpu) {
    if (cpu >= 0 && cpu < K3_CPUS) cpus->bits[cpu / 64] |= UINT64_C(1) << cpu % 64;
}

bool k3_cpus_has(const struct k3_cpus *cpus, int cpu) {
    return cpu >= 0 && cpu < K3_CPUS && cpus->bits[cpu / 64] >> cpu % 64 & 1;
}

#ifdef _OPENMP
/* With OMP_PROC_BIND or OMP_PLACES, OpenMP has bound this thread to a part of what the process may use;
 * its places still tell the whole. */
static void add_places(struct k3_cpus *cpus) {
    int ids[1024];
    for (int place = 0; omp_get_proc_bind() != omp_proc_bind_false && place < omp_get_num_places(); place++) {
        int n = omp_get_place_num_procs(place);
        if (n > (int)(sizeof ids / sizeof *ids)) continue;
        omp_get_place_proc_ids(place, ids);
        for (int i = 0; i < n; i++) k3_cpus_add(cpus, ids[i]);
    }
}
#else
static void add_places(struct k3_cpus *cpus) {
    (void)cpus;
}
#endif

static void cpus_allowed(struct k3_cpus *cpus) {
    size_t size = CPU_ALLOC_SIZE(K3_CPUS);
    cpu_set_t *mask = CPU_ALLOC(K3_CPUS);
    memset(cpus, 0, sizeof *cpus);
    if (mask && !sched_getaffinity(0, size, mask))
        for (int cpu = 0; cpu < K3_CPUS; cpu++)
            if (CPU_ISSET_S((size_t)cpu, size, mask)) k3_cpus_add(cpus, cpu);
    CPU_FREE(mask);
    add_places(cpus);
}

/* The first logical CPU of cpu's core, as /sys tells; cpu itself if it does not. */
static int first_sibling(const char *root, int cpu) {
    char path[128], text[256], *end;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    if (!read_small(root, path, text, sizeof text)) return cpu;
    long first = strtol(text, &end, 10);
    return end == text || first < 0 || first >= K3_CPUS ? cpu : (int)first;
}

int k3_sysfs_cores(const char *root, const struct k3_cpus *cpus) {
    struct k3_cpus seen = {0};
    int cores = 0;
    for (int cpu = 0; cpu < K3_CPUS; cpu++) {
        if (!k3_cpus_has(cpus, cpu)) continue;
        int first = first_sibling(root, cpu);
        cores += !k3_cpus_has(&seen, first);
        k3_cpus_add(&seen, first);
    }
    return cores;
}

#ifdef HAVE_HWLOC

int k3_hwloc_cores(const char *synthetic, const struct k3_cpus *cpus) {
    hwloc_topology_t t;
    int cores = 0;
    if (hwloc_topology_init(&t)) return 0;
    hwloc_bitmap_t mask = hwloc_bitmap_alloc();
    if (mask && (!synthetic || !hwloc_topology_set_synthetic(t, synthetic)) && !hwloc_topology_load(t)) {
        for (int cpu = 0; cpu < K3_CPUS; cpu++)
            if (k3_cpus_has(cpus, cpu)) hwloc_bitmap_set(mask, (unsigned)cpu);
        hwloc_obj_t core = NULL;
        while ((core = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_CORE, core)))
            cores += hwloc_bitmap_intersects(core->cpuset, mask);
    }
    hwloc_bitmap_free(mask);
    hwloc_topology_destroy(t);
    return cores;
}

#else

int k3_hwloc_cores(const char *synthetic, const struct k3_cpus *cpus) {
    (void)synthetic;
    (void)cpus;
    return 0;
}

#endif

/* hwloc takes 7 ms to find what /sys says in no time, so it is asked only where /sys is silent. */
int k3_cores_allowed(void) {
    struct k3_cpus cpus;
    char text[256];
    cpus_allowed(&cpus);
    bool told = read_small("", "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list", text, sizeof text);
    int cores = told ? 0 : k3_hwloc_cores(NULL, &cpus);
    if (!cores) cores = k3_sysfs_cores("", &cpus);
    return cores ? cores : 1;
}

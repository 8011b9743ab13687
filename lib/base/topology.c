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

/* Where one controller's groups are mounted and which group this process is in. */
struct group {
    bool v2;
    char mount[PATH_SIZE], path[PATH_SIZE];
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
    for (const char *line = self; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *a = strchr(line, ':'), *b = a ? strchr(a + 1, ':') : NULL;
        size_t end = strcspn(line, "\n");
        if (!b || b > line + end) continue;
        bool v2 = b == a + 1;
        if (!v2 && !list_has(a + 1, (size_t)(b - a - 1), controller)) continue;
        g->v2 = v2;
        snprintf(g->path, sizeof g->path, "%.*s", (int)(line + end - b - 1), b + 1);
        snprintf(g->mount, sizeof g->mount, "/sys/fs/cgroup%s%s", v2 ? "" : "/", v2 ? "" : controller);
        if (!v2) return true; /* where both hierarchies exist, v1 has the controller */
    }
    return g->mount[0];
}

/* Calls `visit` for the group and all above it; a container may see only the topmost. */
static void walk(const char *root, struct group *g, void (*visit)(const char *root, const char *dir, bool v2, void *out),
                 void *out) {
    char dir[2 * PATH_SIZE];
    for (;;) {
        size_t n = strlen(g->path);
        while (n && g->path[n - 1] == '/') g->path[--n] = 0;
        snprintf(dir, sizeof dir, "%s%s", g->mount, g->path);
        visit(root, dir, g->v2, out);
        if (!n) return;
        *strrchr(g->path, '/') = 0;
    }
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
    struct group g = {.mount = ""};
    int least = INT_MAX;
    if (find_group(self, "cpu", &g)) walk(root, &g, visit_cpu, &least);
    return least;
}

static void visit_memory(const char *root, const char *dir, bool v2, void *out) {
    char limit[64], usage[64], stat[8192] = "";
    if (!read_in(root, dir, v2 ? "memory.max" : "memory.limit_in_bytes", limit, sizeof limit) ||
        !read_in(root, dir, v2 ? "memory.current" : "memory.usage_in_bytes", usage, sizeof usage))
        return;
    uint64_t most = parse_limit(limit), used = parse_limit(usage);
    if (most == UINT64_MAX || used == UINT64_MAX) return;
    read_in(root, dir, "memory.stat", stat, sizeof stat);
    uint64_t cache = stat_value(stat, v2 ? "inactive_file" : "total_inactive_file") +
                     stat_value(stat, v2 ? "active_file" : "total_active_file");
    used -= cache < used ? cache : used;
    uint64_t left = most > used ? most - used : 0, *least = out;
    if (left < *least) *least = left;
}

uint64_t k3_cgroup_memory(const char *root, const char *self) {
    struct group g = {.mount = ""};
    uint64_t least = UINT64_MAX;
    if (find_group(self, "memory", &g)) walk(root, &g, visit_memory, &least);
    return least;
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

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

uint64_t k3_memory_available(void) {
    char self[8192];
    uint64_t left = least(k3_meminfo_available(""), address_space_left());
    if (read_small("", "/proc/self/cgroup", self, sizeof self)) left = least(left, k3_cgroup_memory("", self));
    return left;
}

#ifdef HAVE_HWLOC

int k3_cores_allowed(void) {
    hwloc_topology_t t;
    int cores = 0;
    if (hwloc_topology_init(&t)) return 1;
    hwloc_cpuset_t mask = hwloc_bitmap_alloc();
    if (mask && !hwloc_topology_load(t) && !hwloc_get_cpubind(t, mask, HWLOC_CPUBIND_PROCESS)) {
        int all = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE);
        for (int i = 0; i < all; i++)
            cores += hwloc_bitmap_intersects(hwloc_get_obj_by_type(t, HWLOC_OBJ_CORE, (unsigned)i)->cpuset, mask);
        if (all <= 0) cores = hwloc_bitmap_weight(mask);
    }
    hwloc_bitmap_free(mask);
    hwloc_topology_destroy(t);
    return cores > 0 ? cores : 1;
}

#else

/* The first logical CPU of cpu's core, as /sys tells; cpu itself if it does not. */
static int first_sibling(int cpu) {
    char path[128], text[256];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    return read_small("", path, text, sizeof text) ? atoi(text) : cpu;
}

int k3_cores_allowed(void) {
    int cpus = CPU_SETSIZE * 8, cores = 0;
    cpu_set_t *mask = CPU_ALLOC((size_t)cpus), *seen = CPU_ALLOC((size_t)cpus);
    size_t size = CPU_ALLOC_SIZE((size_t)cpus);
    if (mask && seen && !sched_getaffinity(0, size, mask)) {
        CPU_ZERO_S(size, seen);
        for (int cpu = 0; cpu < cpus; cpu++) {
            if (!CPU_ISSET_S((size_t)cpu, size, mask)) continue;
            int first = first_sibling(cpu);
            cores += !CPU_ISSET_S((size_t)first, size, seen);
            CPU_SET_S((size_t)first, size, seen);
        }
    }
    CPU_FREE(mask);
    CPU_FREE(seen);
    return cores > 0 ? cores : 1;
}

#endif

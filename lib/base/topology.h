/* What this process may use of the machine: cores and memory, as the kernel and cgroups limit them. */
#ifndef K3_BASE_TOPOLOGY_H
#define K3_BASE_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

/* Physical cores of which this process may use at least one logical CPU (at least 1). */
int k3_cores_allowed(void);

/* Bytes that this process may still take: what the system calls available, less where a cgroup
 * (v1 or v2) or RLIMIT_AS leaves less.  Cache that a cgroup can drop counts as free. */
uint64_t k3_memory_available(void);

/* The same readings below another root than "/", for tests.  `self` is the text of
 * /proc/self/cgroup.  UINT64_MAX / INT_MAX: no limit is set. */
int k3_cgroup_cpus(const char *root, const char *self);       /* quota over period, rounded down, at least 1 */
uint64_t k3_cgroup_memory(const char *root, const char *self); /* limit less use, of the tightest level */
uint64_t k3_meminfo_available(const char *root);

#define K3_CPUS 8192 /* logical CPUs that Linux can be built for */

struct k3_cpus {
    uint64_t bits[K3_CPUS / 64];
};

void k3_cpus_add(struct k3_cpus *cpus, int cpu);
bool k3_cpus_has(const struct k3_cpus *cpus, int cpu);

/* Physical cores with a CPU of the set: as /sys below `root` tells, and as hwloc does of this machine or
 * of one described in words ("pack:2 core:4 pu:2"); 0 if the library has no hwloc or hwloc knows no cores. */
int k3_sysfs_cores(const char *root, const struct k3_cpus *cpus);
int k3_hwloc_cores(const char *synthetic, const struct k3_cpus *cpus);

#endif

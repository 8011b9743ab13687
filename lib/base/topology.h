/* What this process may use of the machine: cores and memory, as the kernel and cgroups limit them. */
#ifndef K3_BASE_TOPOLOGY_H
#define K3_BASE_TOPOLOGY_H

#include <stdint.h>

/* Physical cores in the process's affinity mask (at least 1). */
int k3_cores_allowed(void);

/* Bytes that this process may still take: what the system calls available, less where a cgroup
 * (v1 or v2) or RLIMIT_AS leaves less.  Cache that a cgroup can drop counts as free. */
uint64_t k3_memory_available(void);

/* The same readings below another root than "/", for tests.  `self` is the text of
 * /proc/self/cgroup.  UINT64_MAX / INT_MAX: no limit is set. */
int k3_cgroup_cpus(const char *root, const char *self);       /* quota over period, rounded down, at least 1 */
uint64_t k3_cgroup_memory(const char *root, const char *self); /* limit less use, of the tightest level */
uint64_t k3_meminfo_available(const char *root);

#endif

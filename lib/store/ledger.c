#include "store/ledger.h"

#include "base/error.h"

#include <inttypes.h>

k3_status k3_ledger_charge(struct k3_ledger *l, uint64_t bytes, const char *what, k3_error *err) {
    uint64_t used = atomic_load(&l->used);
    do {
        if (bytes > l->budget || used > l->budget - bytes)
            return k3_fail(err, K3_ERR_MEMORY,
                           "%s: %" PRIu64 " bytes are needed, and %" PRIu64 " of the memory budget of %" PRIu64
                           " bytes are left", what, bytes, l->budget > used ? l->budget - used : 0, l->budget);
    } while (!atomic_compare_exchange_weak(&l->used, &used, used + bytes));
    return K3_OK;
}

void k3_ledger_refund(struct k3_ledger *l, uint64_t bytes) {
    atomic_fetch_sub(&l->used, bytes);
}

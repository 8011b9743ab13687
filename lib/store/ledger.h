/* The account of the memory budget: no byte is taken that the budget does not hold. */
#ifndef K3_STORE_LEDGER_H
#define K3_STORE_LEDGER_H

#include <k3/k3.h>
#include <stdatomic.h>

struct k3_ledger {
    uint64_t budget;
    _Atomic uint64_t used;
};

/* Charges `bytes` for `what`, or leaves the account as it is and says what was asked and what is left. */
k3_status k3_ledger_charge(struct k3_ledger *l, uint64_t bytes, const char *what, k3_error *err);
void k3_ledger_refund(struct k3_ledger *l, uint64_t bytes);

#endif

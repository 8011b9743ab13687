/* The inside of k3_checkpoint: config, tensor table and layout of one directory. */
#ifndef K3_MODEL_CHECKPOINT_H
#define K3_MODEL_CHECKPOINT_H

#include "model/layout.h"

struct k3_checkpoint {
    struct k3_config config;
    struct k3_tensors *tensors;
    struct k3_layout layout;
};

#endif

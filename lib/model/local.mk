K3_MODEL = \
  lib/model/checkpoint.h lib/model/layout.c lib/model/layout.h \
  lib/model/model.h lib/model/weights.c lib/model/vectors.c \
  lib/model/linear.c lib/model/linear.h \
  lib/model/state.c lib/model/state.h \
  lib/model/step.h lib/model/workspace.c lib/model/forward.c \
  lib/model/attn_res.c lib/model/attn_res.h \
  lib/model/kda.c lib/model/kda_chunk.c lib/model/kda_chunk.h \
  lib/model/mla.c lib/model/mla_attend.c lib/model/mla_attend.h \
  lib/model/router.c lib/model/router.h \
  lib/model/mlp.c lib/model/mlp.h lib/model/latent_moe.c

K3_FORMAT =
K3_FORMAT += \
  lib/format/utf8.c lib/format/utf8.h \
  lib/format/tokenizer.c lib/format/tokenizer.h \
  lib/format/tokenizer_file.c lib/format/tokenizer_special.c \
  lib/format/tokenizer_pieces.c lib/format/tokenizer_merge.c \
  lib/format/decoder.c
K3_FORMAT += lib/format/config.c lib/format/config.h
K3_FORMAT += \
  lib/format/json_scan.c lib/format/json_scan.h \
  lib/format/name_map.c lib/format/name_map.h \
  lib/format/safetensors.c lib/format/safetensors.h \
  lib/format/safetensors_header.c lib/format/safetensors_header.h \
  lib/format/safetensors_index.c lib/format/safetensors_index.h
K3_FORMAT += \
  lib/format/text_buffer.c lib/format/text_buffer.h \
  lib/format/json_respell.c lib/format/json_respell.h \
  lib/format/chat.h lib/format/chat_read.c lib/format/chat_render.c lib/format/reply.c

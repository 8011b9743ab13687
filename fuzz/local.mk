# Fuzzing needs no configured build: fuzz/run SECONDS
EXTRA_DIST += fuzz/run fuzz/config.c fuzz/safetensors_header.c fuzz/safetensors_index.c \
  fuzz/tokenizer_file.c fuzz/tokenizer_text.c fuzz/chat.c

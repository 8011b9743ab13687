check_PROGRAMS += tests/tokenizer tests/tokenizer_files tests/tokenizer_ids tests/decoder tests/sampler tests/chat
TESTS += tests/tokenizer tests/tokenizer_files tests/tokenizer_ids tests/decoder tests/sampler tests/chat
tests_tokenizer_SOURCES = tests/tokenizer.c tests/vocabulary.h
tests_tokenizer_LDADD = $(K3_TEST_LIBS) $(JANSSON_LIBS) -lpthread
tests_tokenizer_files_SOURCES = tests/tokenizer_files.c tests/vocabulary.h
tests_tokenizer_files_LDADD = $(K3_TEST_LIBS)
tests_tokenizer_ids_SOURCES = tests/tokenizer_ids.c tests/chat_case.h
tests_tokenizer_ids_LDADD = $(K3_TEST_LIBS) $(JANSSON_LIBS)
tests_decoder_SOURCES = tests/decoder.c tests/vocabulary.h
tests_decoder_LDADD = $(K3_TEST_LIBS)
tests_sampler_SOURCES = tests/sampler.c
tests_sampler_LDADD = $(K3_TEST_LIBS)
tests_chat_SOURCES = tests/chat.c tests/chat_case.h
tests_chat_LDADD = $(K3_TEST_LIBS) $(JANSSON_LIBS)
EXTRA_DIST += \
  tools/make_tokenizer.py \
  tests/data/tokenizer/vectors.json tests/data/tokenizer/chat.json \
  tests/data/tokenizer/256/tiktoken.model tests/data/tokenizer/256/tokenizer_config.json \
  tests/data/tokenizer/744/tiktoken.model tests/data/tokenizer/744/tokenizer_config.json

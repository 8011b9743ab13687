# The program: nothing but the public header, Jansson (--json) and the C library.
bin_PROGRAMS += k3
k3_SOURCES = \
  cli/main.c cli/command.h \
  cli/message.c cli/message.h \
  cli/options.c cli/options.h \
  cli/numbers.c cli/numbers.h \
  cli/input.c cli/input.h \
  cli/output.c cli/output.h \
  cli/json.c cli/json.h \
  cli/progress.c cli/progress.h \
  cli/interrupt.c cli/interrupt.h \
  cli/clock.h \
  cli/bandwidth.c cli/bandwidth.h \
  cli/load.c cli/load.h \
  cli/prompt.c cli/prompt.h \
  cli/sampling.c cli/sampling.h \
  cli/reply.c cli/reply.h \
  cli/generate.c cli/generate.h \
  cli/run.c cli/logits.c cli/inspect.c cli/bench.c \
  cli/windows.c cli/windows.h cli/words.c cli/words.h cli/perplexity.c cli/compare.c \
  cli/judge.c cli/judge.h cli/tasks.c cli/tasks.h cli/eval.c cli/eval_report.c cli/eval.h
k3_CPPFLAGS = -I$(top_srcdir)/include
k3_LDADD = lib/libk3.la $(JANSSON_LIBS) $(PCRE2_LIBS)

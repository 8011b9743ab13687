#include "config.h"

#include "progress.h"
#include "clock.h"
#include "message.h"
#include "numbers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REDRAW 0.1      /* seconds between two drawings of the bar */
#define LINE_EVERY 10.0 /* seconds between two lines where there is no terminal */

void progress_start(struct progress *p, const char *what, const char *unit, bool quiet) {
    const char *terminal = getenv("TERM");
    *p = (struct progress){.what = what, .unit = unit, .quiet = quiet, .start = seconds()};
    p->terminal = isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb") != 0;
    p->last = p->start;
}

static void amount(const struct progress *p, uint64_t n, char room[32]) {
    if (p->unit) number_grouped(n, room);
    else number_human(n, room);
}

void progress_update(struct progress *p, uint64_t done, uint64_t total) {
    double now = seconds();
    if (p->quiet || total == 0) return;
    if (now - p->last < (p->terminal ? REDRAW : LINE_EVERY) && !(p->terminal && !p->drawn)) return;
    p->last = now;
    char have[32], all[32];
    double share = (double)(done < total ? done : total) / (double)total;
    amount(p, done, have);
    amount(p, total, all);
    const char *blank = p->unit ? " " : "", *unit = p->unit ? p->unit : "";
    if (!p->terminal) {
        say("%s: %s of %s%s%s (%.0f %%) after %.0f s", p->what, have, all, blank, unit, 100 * share, now - p->start);
        return;
    }
    static const char full[] = "##############################", empty[] = "..............................";
    int width = (int)sizeof full - 1, filled = (int)(share * width);
    fprintf(stderr, "\r%s [%.*s%.*s] %3.0f %%  %s of %s%s%s\033[K", p->what, filled, full, width - filled, empty,
            100 * share, have, all, blank, unit);
    fflush(stderr);
    p->drawn = true;
}

void progress_end(struct progress *p) {
    if (p->drawn) fputs("\r\033[K", stderr);
    p->drawn = false;
}

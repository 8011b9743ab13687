#include "eval.h"
#include "json.h"
#include "message.h"
#include "output.h"
#include "windows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct summary {
    const char *group; /* NULL: all */
    size_t tasks, runs, right;
    double rate, low, high;        /* a task is the unit: repeats of one are no independent evidence */
    struct mean repeats;           /* success rate of each repeat */
    struct mean tokens, seconds;   /* of a run */
    double hour_task, hour_success; /* cost; NaN where there is none */
};

/* Wilson's interval of 95 %. */
static void interval(double rate, double n, double *low, double *high) {
    const double z = 1.959964;
    double centre = (rate + z * z / (2 * n)) / (1 + z * z / n);
    double half = z / (1 + z * z / n) * sqrt(rate * (1 - rate) / n + z * z / (4 * n * n));
    *low = fmax(0, centre - half);
    *high = fmin(1, centre + half);
}

static double deviation(const struct mean *m) {
    return m->count > 1 ? sqrt(m->squares / (m->count - 1)) : 0;
}

/* The success rate of repeat r over the group's tasks that were run. */
static void add_repeat(const struct outcomes *o, const char *group, size_t r, struct mean *out) {
    size_t right = 0, runs = 0;
    for (size_t i = r; i < o->done; i += o->repeats) {
        if (group && strcmp(o->tasks->of[i / o->repeats].group, group)) continue;
        right += o->of[i].right;
        runs++;
    }
    if (runs) mean_add(out, (double)right / (double)runs);
}

static struct summary sum_up(const struct outcomes *o, const char *group) {
    struct summary s = {.group = group, .hour_task = NAN, .hour_success = NAN};
    for (size_t i = 0; i < o->done; i++) {
        if (group && strcmp(o->tasks->of[i / o->repeats].group, group)) continue;
        s.tasks += i % o->repeats == 0;
        s.runs++;
        s.right += o->of[i].right;
        mean_add(&s.tokens, (double)o->of[i].tokens);
        mean_add(&s.seconds, o->of[i].seconds);
    }
    if (!s.runs) return s;
    for (size_t r = 0; r < o->repeats; r++) add_repeat(o, group, r, &s.repeats);
    s.rate = (double)s.right / (double)s.runs;
    interval(s.rate, (double)s.tasks, &s.low, &s.high);
    double cost = o->price * s.seconds.sum / 3600;
    if (o->price >= 0) s.hour_task = cost / (double)s.runs;
    if (o->price >= 0 && s.right) s.hour_success = cost / (double)s.right;
    return s;
}

static json_t *number_or_null(double x) {
    return isnan(x) ? json_null() : json_real(x);
}

static json_t *summary_json(const struct summary *s) {
    return json_pack("{s:s, s:I, s:I, s:I, s:f, s:[f, f], s:f, s:f, s:f, s:f, s:f, s:o, s:o}", "group",
                     s->group ? s->group : "all", "tasks", (json_int_t)s->tasks, "runs", (json_int_t)s->runs, "right",
                     (json_int_t)s->right, "rate", s->rate, "interval", s->low, s->high, "rate_deviation",
                     deviation(&s->repeats), "tokens", s->tokens.mean, "tokens_deviation", deviation(&s->tokens),
                     "seconds", s->seconds.mean, "seconds_deviation", deviation(&s->seconds), "cost_per_task",
                     number_or_null(s->hour_task), "cost_per_success", number_or_null(s->hour_success));
}

static int print_row(const struct summary *s) {
    char line[512], cost[64] = "";
    if (!isnan(s->hour_task)) snprintf(cost, sizeof cost, "  %.3g / %.3g", s->hour_task, s->hour_success);
    int n = snprintf(line, sizeof line, "%-20.40s %6zu %6zu %6.1f %% (%.1f - %.1f) %8.1f (%.1f) %8.3f (%.3f)%s\n",
                     s->group ? s->group : "all", s->tasks, s->right, 100 * s->rate, 100 * s->low, 100 * s->high,
                     s->tokens.mean, deviation(&s->tokens), s->seconds.mean, deviation(&s->seconds), cost);
    return output_text(line, (size_t)n);
}

static int print_head(const struct outcomes *o) {
    char line[256];
    int n = snprintf(line, sizeof line, "%zu tasks, %zu repeats\n%-20s %6s %6s %s%s\n", o->tasks->count, o->repeats,
                     "group", "tasks", "right", "  rate (95 %)      tokens (deviation)   seconds (deviation)",
                     o->price >= 0 ? "  cost per task / success" : "");
    return output_text(line, (size_t)n);
}

/* Whether task i is the first of its group. */
static bool opens_group(const struct outcomes *o, size_t i) {
    for (size_t j = 0; j < i; j++)
        if (!strcmp(o->tasks->of[j].group, o->tasks->of[i].group)) return false;
    return true;
}

int eval_report(const struct outcomes *o, bool json, const char *model) {
    json_t *groups = json_array();
    int code = json ? CLI_OK : print_head(o);
    for (size_t i = 0; !code && i <= o->tasks->count; i++) {
        bool all = i == o->tasks->count;
        if (!all && !opens_group(o, i)) continue;
        struct summary s = sum_up(o, all ? NULL : o->tasks->of[i].group);
        if (json) json_array_append_new(groups, summary_json(&s));
        else if (s.runs) code = print_row(&s);
    }
    if (!json) return json_decref(groups), code;
    return json_print(json_pack("{s:o, s:I, s:I, s:o}", "model", json_text(model, strlen(model)), "repeats",
                                (json_int_t)o->repeats, "runs", (json_int_t)o->done, "groups", groups));
}

#include "tasks.h"
#include "input.h"
#include "message.h"

#include <stdlib.h>
#include <string.h>

/* An optional string. */
static bool read_text(const json_t *object, const char *key, const char **out, const char **why) {
    json_t *v = json_object_get(object, key);
    if (v && !json_is_string(v)) {
        *why = "id, group, prompt and effort must be texts";
        return false;
    }
    if (v) *out = json_string_value(v);
    return true;
}

static bool read_prompt(struct task *t, const char **why) {
    json_t *messages = json_object_get(t->object, "messages"), *tools = json_object_get(t->object, "tools");
    *why = "one of prompt (a text) and messages (an array) is needed";
    if (!read_text(t->object, "prompt", &t->prompt, why)) return false;
    if (!t->prompt == !json_is_array(messages)) return false;
    if (!t->prompt && !(t->messages = json_dumps(messages, JSON_COMPACT))) return *why = "out of memory", false;
    *why = "tools: they go with messages, as an array";
    if (tools && (t->prompt || !json_is_array(tools))) return false;
    if (tools && !(t->tools = json_dumps(tools, JSON_COMPACT))) return *why = "out of memory", false;
    return true;
}

static bool read_settings(struct task *t, const char **why) {
    json_t *thinking = json_object_get(t->object, "thinking"), *most = json_object_get(t->object, "max_tokens");
    t->thinking = !json_is_false(thinking);
    t->effort = "max";
    *why = "thinking: not true or false";
    if (thinking && !json_is_boolean(thinking)) return false;
    if (!read_text(t->object, "effort", &t->effort, why)) return false;
    if (!strcmp(t->effort, "none")) t->effort = NULL;
    *why = "max_tokens: not a number from 1 to 1000000";
    if (most && !(json_is_integer(most) && json_integer_value(most) >= 1 && json_integer_value(most) <= 1000000))
        return false;
    t->max_tokens = most ? (uint64_t)json_integer_value(most) : 0;
    return true;
}

/* Takes the object over.  False: *why names the member that is wrong. */
static bool read_task(struct task *t, json_t *object, const char **why) {
    *t = (struct task){.object = object, .group = ""};
    *why = "not a JSON object";
    if (!json_is_object(object)) return false;
    *why = "id: not there";
    if (!read_text(object, "id", &t->id, why) || !t->id) return false;
    return read_text(object, "group", &t->group, why) && read_prompt(t, why) && read_settings(t, why) &&
           judge_read(&t->judge, json_object_get(object, "judge"), why);
}

static void task_clear(struct task *t) {
    judge_clear(&t->judge);
    free(t->messages);
    free(t->tools);
    json_decref(t->object);
}

static uint64_t fnv1a(const char *s, size_t n) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n; i++) hash = (hash ^ (unsigned char)s[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static int add(struct tasks *tasks, const char *line, size_t n, const char *path, size_t number) {
    if ((tasks->count & (tasks->count - 1)) == 0) { /* the room is the power of two that the count needs */
        struct task *grown = realloc(tasks->of, (tasks->count ? 2 * tasks->count : 1) * sizeof *grown);
        if (!grown) return fail("%s: out of memory", path);
        tasks->of = grown;
    }
    json_error_t error;
    const char *why;
    struct task *t = &tasks->of[tasks->count];
    json_t *object = json_loadb(line, n, JSON_REJECT_DUPLICATES, &error);
    if (!object) return fail("%s: line %zu: %s", path, number, error.text);
    tasks->count++;
    return read_task(t, object, &why) ? CLI_OK : fail("%s: line %zu: %s", path, number, why);
}

static int unique_ids(const struct tasks *tasks, const char *path) {
    json_t *seen = json_object();
    int code = seen ? CLI_OK : fail("%s: out of memory", path);
    for (size_t i = 0; !code && i < tasks->count; i++) {
        if (json_object_get(seen, tasks->of[i].id)) code = fail("%s: two tasks with the id %s", path, tasks->of[i].id);
        else if (json_object_set_new(seen, tasks->of[i].id, json_true())) code = fail("%s: out of memory", path);
    }
    json_decref(seen);
    return code;
}

int tasks_read(const char *path, struct tasks *tasks) {
    char *text;
    size_t n, number = 0;
    *tasks = (struct tasks){0};
    int code = input_file(path, &text, &n);
    if (code) return code;
    tasks->bytes = n;
    tasks->hash = fnv1a(text, n);
    for (size_t at = 0; !code && at < n;) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t length = (end ? (size_t)(end - text) : n) - at;
        number++;
        if (length) code = add(tasks, text + at, length, path, number);
        at += length + 1;
    }
    free(text);
    if (!code && !tasks->count) code = fail("%s: no tasks in it", path);
    return code ? code : unique_ids(tasks, path);
}

void tasks_clear(struct tasks *tasks) {
    for (size_t i = 0; i < tasks->count; i++) task_clear(&tasks->of[i]);
    free(tasks->of);
}

void tasks_select(struct tasks *tasks, const char *group, uint64_t limit) {
    size_t kept = 0;
    for (size_t i = 0; i < tasks->count; i++) {
        struct task *t = &tasks->of[i];
        bool wanted = (!group || !strcmp(t->group, group)) && (!limit || kept < limit);
        if (wanted) tasks->of[kept++] = *t;
        else task_clear(t);
    }
    tasks->count = kept;
}

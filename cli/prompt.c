#include "prompt.h"
#include "input.h"
#include "json.h"
#include "message.h"

#include <stdlib.h>
#include <string.h>

void prompt_init(struct prompt *p) {
    *p = (struct prompt){0};
    k3_chat_options_init(&p->chat);
}

static int set_source(struct prompt *p, const char *command, enum prompt_source source) {
    if (p->source && p->source != source)
        return fail_usage("%s: give one of -p, -f, --ids, --chat and --messages, not two", command);
    p->source = source;
    p->text = optarg;
    return CLI_OK;
}

static int set_thinking(struct prompt *p) {
    if (strcmp(optarg, "on") && strcmp(optarg, "off")) return fail_usage("--thinking: \"%s\" is not on or off", optarg);
    p->chat.thinking = !strcmp(optarg, "on");
    return CLI_OK;
}

static int set_effort(struct prompt *p) {
    static const char *const known[] = {"low", "high", "max"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(optarg, known[i])) p->chat.effort = known[i];
    if (!strcmp(optarg, "none")) p->chat.effort = NULL;
    else if (strcmp(optarg, p->chat.effort ? p->chat.effort : ""))
        return fail_usage("--effort: \"%s\" is not one of low, high, max and none", optarg);
    return CLI_OK;
}

bool prompt_option(struct prompt *p, const char *command, int option, int *code) {
    *code = CLI_OK;
    switch (option) {
    case 'p': *code = set_source(p, command, PROMPT_TEXT); return true;
    case 'f': *code = set_source(p, command, PROMPT_FILE); return true;
    case OPTION_IDS: *code = set_source(p, command, PROMPT_IDS); return true;
    case OPTION_CHAT: *code = set_source(p, command, PROMPT_CHAT); return true;
    case OPTION_MESSAGES: *code = set_source(p, command, PROMPT_MESSAGES); return true;
    case OPTION_SPECIAL: p->encode_flags |= K3_ENCODE_SPECIAL; return true;
    case OPTION_TOOLS: p->tools_file = optarg; break;
    case OPTION_THINKING: *code = set_thinking(p); break;
    case OPTION_EFFORT: *code = set_effort(p); break;
    default: return false;
    }
    p->chat_option = true;
    return true;
}

int prompt_check(const struct prompt *p, const char *command) {
    if (!p->source)
        return fail_usage("%s: no prompt given: one of -p, -f, --ids, --chat and --messages is needed", command);
    if (p->chat_option && !prompt_is_chat(p))
        return fail_usage("%s: --tools, --thinking and --effort go with --chat or --messages", command);
    if (p->encode_flags && prompt_is_chat(p))
        return fail_usage("%s: --special goes with -p or -f: a message never holds special tokens", command);
    return CLI_OK;
}

static int encode_text(struct prompt *p, const k3_tokenizer *t) {
    k3_error err;
    char *text = NULL;
    size_t length = p->source == PROMPT_TEXT ? strlen(p->text) : 0;
    int code = p->source == PROMPT_FILE ? input_file(p->text, &text, &length) : CLI_OK;
    if (code) return code;
    if (k3_tokenizer_encode(t, text ? text : p->text, length, p->encode_flags, &p->ids, &p->count, &err))
        code = fail_library(&err);
    else if (!p->count)
        code = fail_usage("%s: the prompt is empty", p->source == PROMPT_TEXT ? "-p" : p->text);
    free(text);
    return code;
}

/* A JSON file as text without a zero byte in it. */
static int json_file(const char *path, char **text) {
    size_t length;
    int code = input_file(path, text, &length);
    if (!code && strlen(*text) != length) code = fail("%s: a zero byte in it", path);
    return code;
}

/* One user message; bytes that are not UTF-8 become '?'. */
static char *one_message(const char *text) {
    json_t *messages = json_pack("[{s:s, s:o}]", "role", "user", "content", json_text(text, strlen(text)));
    char *json = messages ? json_dumps(messages, JSON_COMPACT) : NULL;
    json_decref(messages);
    return json;
}

static int encode_chat(struct prompt *p, const k3_tokenizer *t) {
    k3_error err;
    char *messages = NULL, *tools = NULL;
    k3_chat_options chat = p->chat;
    int code = p->source == PROMPT_MESSAGES ? json_file(p->text, &messages) : CLI_OK;
    if (p->source == PROMPT_CHAT && !(messages = one_message(p->text))) code = fail("--chat: out of memory");
    if (!code && p->tools_file) code = json_file(p->tools_file, &tools);
    chat.tools = tools;
    if (!code && k3_chat_render(t, messages, &chat, &p->ids, &p->count, &err)) {
        bool file = p->source == PROMPT_MESSAGES && !strncmp(err.text, "message", 7);
        const char *name = file ? p->text : !strncmp(err.text, "tools", 5) ? p->tools_file : NULL;
        code = name ? fail("%s: %s", name, k3_error_text(&err)) : fail_library(&err);
    }
    free(messages);
    free(tools);
    return code;
}

int prompt_encode(struct prompt *p, const k3_tokenizer *t) {
    if (p->source == PROMPT_IDS) return input_ids("--ids", p->text, &p->ids, &p->count);
    return prompt_is_chat(p) ? encode_chat(p, t) : encode_text(p, t);
}

void prompt_clear(struct prompt *p) {
    k3_free(p->ids);
    p->ids = NULL;
}

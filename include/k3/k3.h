/* libk3: Kimi K3 and Kimi Linear on the machine at hand.
 *
 * This header is the manual.  A program opens a model, makes a session on it, feeds token ids
 * and reads logits; a tokenizer turns text into ids and back; a sampler picks the next id.
 *
 * Rules that hold everywhere:
 *  - A function that can fail returns a k3_status and, where `err` is not NULL, leaves one line
 *    of text there that names the file, tensor, option or layer at fault.  `err` may be NULL.
 *  - Handles are opaque.  What `*_open` and `*_new` return belongs to the caller until the
 *    matching `*_close` or `*_free`, which accept NULL.  `*out` is set only on success.
 *  - Option structs are filled by their `*_init` first; its `size` field lets them grow.
 *  - The library never prints, never exits, never reads an environment variable (OpenMP's own
 *    runtime does) and keeps no global state: two models may live in one process.
 *  - A k3_model, k3_checkpoint and k3_tokenizer may be used by several threads at once.
 *    A k3_session, k3_sampler and k3_decoder serve one thread at a time.
 */
#ifndef K3_K3_H
#define K3_K3_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define K3_API __attribute__((visibility("default")))
#else
#define K3_API
#endif

/* ---- versions ---------------------------------------------------------------------------- */

#define K3_VERSION_MAJOR 0
#define K3_VERSION_MINOR 1
#define K3_VERSION_PATCH 0

/* The version of the library that is running, as "major.minor.patch". */
K3_API const char *k3_version(void);

/* ---- errors ------------------------------------------------------------------------------ */

typedef enum k3_status {
    K3_OK = 0,
    K3_ERR_ARGUMENT = 1,    /* a call or an option that makes no sense */
    K3_ERR_MEMORY = 2,      /* the budget or the machine cannot hold it */
    K3_ERR_IO = 3,          /* a file could not be opened, read or written */
    K3_ERR_FORMAT = 4,      /* a file says something that cannot be true */
    K3_ERR_UNSUPPORTED = 5, /* valid, but not something this build can do */
    K3_ERR_TOKEN = 6,       /* a token id outside the vocabulary */
    K3_ERR_NUMERIC = 7,     /* NaN or infinity where a number must be */
    K3_ERR_CANCELLED = 8    /* a progress callback asked to stop */
} k3_status;

/* Where a failing call leaves its text.  Lives with the caller; no initialisation is needed. */
typedef struct k3_error {
    k3_status status;
    char text[1020];
} k3_error;

/* The text of `err`: one line, without a newline.  Never NULL. */
K3_API const char *k3_error_text(const k3_error *err);

/* A short name of a status, such as "out of memory".  Never NULL. */
K3_API const char *k3_status_name(k3_status status);

/* Frees what a call handed out with the words "free with k3_free". */
K3_API void k3_free(void *p);

/* ---- checkpoint: what a directory holds, without reading weights -------------------------- */

typedef struct k3_checkpoint k3_checkpoint;

/* Opens a checkpoint directory as published: config.json and safetensors shards with or without
 * an index.  Reads and checks every header, the presence, type and shape of all tensors that the
 * model needs and the sizes of the files; reads no weights.
 * Errors: K3_ERR_IO, K3_ERR_FORMAT, K3_ERR_UNSUPPORTED, K3_ERR_MEMORY. */
K3_API k3_status k3_checkpoint_open(const char *path, k3_checkpoint **out, k3_error *err);
K3_API void k3_checkpoint_close(k3_checkpoint *ck);

/* Bytes of one family of weights, as stored. */
typedef struct k3_bytes {
    uint64_t kda, mla;        /* attention, of all layers of that kind */
    uint64_t dense;           /* dense MLPs */
    uint64_t shared;          /* shared experts */
    uint64_t latent;          /* LatentMoE's down and up projections and its norm */
    uint64_t router;          /* router weights and biases */
    uint64_t norms;           /* norms and AttnRes vectors */
    uint64_t experts;         /* routed experts */
    uint64_t head, embedding; /* lm_head (0 where tied) and the embedding */
    uint64_t ignored;         /* tensors a text model does not use (vision, drafts) */
} k3_bytes;

typedef struct k3_checkpoint_info {
    size_t size;              /* sizeof(k3_checkpoint_info), set by the caller */
    const char *architecture; /* "kimi_k3" or "kimi_linear"; owned by the checkpoint */
    uint32_t layers, kda_layers, mla_layers, moe_layers;
    uint32_t hidden_size, vocab_size;
    uint32_t experts, experts_per_token, shared_experts; /* experts: the most of any layer */
    uint32_t latent_size;                                /* 0: experts see hidden_size */
    uint32_t attn_res_block_size;                        /* 0: plain residuals */
    uint32_t shards;
    uint64_t tensors;
    bool quantized;       /* some linear is MXFP4 */
    k3_bytes bytes;       /* what the checkpoint holds */
    uint64_t total_bytes; /* all tensors, ignored ones too */
    uint64_t token_bytes; /* weights that one decoded token reads */
} k3_checkpoint_info;

K3_API void k3_checkpoint_describe(const k3_checkpoint *ck, k3_checkpoint_info *info);

typedef struct k3_tensor_info {
    size_t size;       /* sizeof(k3_tensor_info), set by the caller */
    const char *name;  /* as in the file, not terminated: use name_length; owned by the checkpoint */
    size_t name_length;
    const char *dtype; /* "BF16", "F16", "F32", "U8", ... */
    const char *file;  /* shard, relative to the directory */
    uint32_t rank;     /* at most 8 */
    uint64_t shape[8];
    uint64_t offset;   /* first byte in the file */
    uint64_t bytes;
} k3_tensor_info;

/* Describes tensor `i` in [0, info.tensors), in the order of the files. */
K3_API k3_status k3_checkpoint_tensor(const k3_checkpoint *ck, uint64_t i, k3_tensor_info *info,
                                      k3_error *err);

/* ---- model --------------------------------------------------------------------------------- */

typedef struct k3_model k3_model;

typedef enum k3_precision {
    K3_PRECISION_EXACT = 0 /* f32 activations times the exact stored weights */
} k3_precision;

/* Called while weights load, from the thread that opened the model.  Returns false to stop. */
typedef bool (*k3_progress)(void *user, uint64_t done_bytes, uint64_t total_bytes);

typedef struct k3_model_options {
    size_t size;         /* set by k3_model_options_init */
    int threads;         /* 0: the physical cores that this process may use */
    const char *isa;     /* NULL: the best this CPU has; else a name from k3_isa_name */
    uint64_t memory;     /* budget in bytes for all that this model holds; 0: what is free */
    k3_precision precision;
    k3_progress progress; /* may be NULL */
    void *progress_user;
} k3_model_options;

K3_API void k3_model_options_init(k3_model_options *options);

/* Opens the checkpoint at `path` and loads its weights.  options may be NULL.
 * Errors: those of k3_checkpoint_open; K3_ERR_MEMORY (the text says how many bytes are needed);
 *         K3_ERR_UNSUPPORTED (no such ISA here); K3_ERR_CANCELLED. */
K3_API k3_status k3_model_open(const char *path, const k3_model_options *options, k3_model **out,
                               k3_error *err);

/* Close the sessions of a model first. */
K3_API void k3_model_close(k3_model *m);

/* What the opened checkpoint holds; belongs to the model. */
K3_API const k3_checkpoint *k3_model_checkpoint(const k3_model *m);

K3_API uint32_t k3_model_vocab_size(const k3_model *m);
K3_API int k3_model_threads(const k3_model *m);
K3_API const char *k3_model_isa(const k3_model *m);
K3_API uint64_t k3_model_memory_used(const k3_model *m);   /* bytes charged to the budget */
K3_API uint64_t k3_model_memory_budget(const k3_model *m); /* bytes */

/* The ids that end a text: generation_config.json's, else config.json's.  May be empty.
 * The array belongs to the model; its length is returned. */
K3_API size_t k3_model_eos_ids(const k3_model *m, const int32_t **ids);

/* The i-th instruction set that this build and this CPU can run, best first; NULL past the last. */
K3_API const char *k3_isa_name(size_t i);

/* ---- session: one sequence ----------------------------------------------------------------- */

typedef struct k3_session k3_session;

K3_API k3_status k3_session_new(k3_model *m, k3_session **out, k3_error *err);
K3_API void k3_session_free(k3_session *s);

/* Feeds `n` token ids and computes the logits of the last one.  n may be 0 (nothing happens).
 * ids: each in [0, k3_model_vocab_size).  all_logits: NULL, or room for n * vocab_size floats,
 * row by row, that receives the logits of every fed id.
 * Errors: K3_ERR_TOKEN (the session is unchanged);
 *         K3_ERR_MEMORY (the budget cannot hold another page: the ids of whole blocks before the
 *         failing one stay fed, see k3_session_position);
 *         K3_ERR_NUMERIC (the text names the layer where NaN or infinity first appeared; the
 *         session must be reset). */
K3_API k3_status k3_session_feed(k3_session *s, const int32_t *ids, size_t n, float *all_logits,
                                 k3_error *err);

/* Logits [vocab_size] of the last id fed; valid until the next call on the session.
 * NULL before the first feed. */
K3_API const float *k3_session_logits(const k3_session *s);

/* Ids fed so far. */
K3_API uint64_t k3_session_position(const k3_session *s);

/* Forgets everything fed; keeps the memory. */
K3_API void k3_session_reset(k3_session *s);

/* ---- tokenizer ------------------------------------------------------------------------------ */

typedef struct k3_tokenizer k3_tokenizer;

/* Reads tiktoken.model and, where present, tokenizer_config.json from a checkpoint directory.
 * Errors: K3_ERR_IO, K3_ERR_FORMAT (file, line and reason), K3_ERR_MEMORY. */
K3_API k3_status k3_tokenizer_open(const char *path, k3_tokenizer **out, k3_error *err);
K3_API void k3_tokenizer_close(k3_tokenizer *t);

/* Number of ids: base tokens and 256 special slots. */
K3_API uint32_t k3_tokenizer_vocab_size(const k3_tokenizer *t);

enum {
    K3_ENCODE_ORDINARY = 0, /* special tokens' spellings stay text: for all that users supply */
    K3_ENCODE_SPECIAL = 1   /* a special token's spelling becomes its id */
};

/* Encodes `length` bytes of UTF-8 (invalid sequences count as U+FFFD).  *ids: free with k3_free;
 * NULL where *n is 0. */
K3_API k3_status k3_tokenizer_encode(const k3_tokenizer *t, const char *text, size_t length,
                                     unsigned flags, int32_t **ids, size_t *n, k3_error *err);

/* The bytes of an id (a special token's spelling), not terminated; NULL if out of range.
 * They belong to the tokenizer. */
K3_API const char *k3_tokenizer_bytes(const k3_tokenizer *t, int32_t id, size_t *length);

/* The id of a special token's spelling, or -1. */
K3_API int32_t k3_tokenizer_special(const k3_tokenizer *t, const char *spelling);

/* True for a special id that has no name of its own (<|reserved_token_N|>) and for [PAD]. */
K3_API bool k3_tokenizer_is_reserved(const k3_tokenizer *t, int32_t id);

/* Streaming decoder: hands out only whole characters. */
typedef struct k3_decoder k3_decoder;
K3_API k3_status k3_decoder_new(const k3_tokenizer *t, k3_decoder **out, k3_error *err);
K3_API void k3_decoder_free(k3_decoder *d);

/* Adds one id.  *text, *length: the UTF-8 that became whole, possibly empty, terminated; valid
 * until the next call on the decoder.  Bytes that can no longer become a character give U+FFFD.
 * Errors: K3_ERR_TOKEN. */
K3_API k3_status k3_decoder_push(k3_decoder *d, int32_t id, const char **text, size_t *length,
                                 k3_error *err);

/* What was held back, as U+FFFD, and a fresh start. */
K3_API k3_status k3_decoder_finish(k3_decoder *d, const char **text, size_t *length, k3_error *err);

/* ---- chat: K3's message format --------------------------------------------------------------- */

/* What surrounds a conversation in the prompt.  Strings are borrowed for the call. */
typedef struct k3_chat_options {
    size_t size;                 /* set by k3_chat_options_init */
    bool thinking;               /* true; false leaves the think channel out, in past turns too */
    const char *effort;          /* "max"; "low", "high"; NULL says nothing about it */
    const char *tools;           /* NULL, or a JSON array in OpenAI's shape: [{"type":"function","function":{...}}] */
    const char *tool_choice;     /* NULL, "auto", "required" or "none" */
    const char *response_format; /* NULL, or a JSON object {"type":"text"|"json_object"|"json_schema", ...} */
    bool generation_prompt;      /* true: end with what starts the assistant's reply */
} k3_chat_options;

K3_API void k3_chat_options_init(k3_chat_options *options);

/* Whether the vocabulary has the special tokens of the format.
 * Errors: K3_ERR_UNSUPPORTED (the text names the missing one). */
K3_API k3_status k3_chat_supported(const k3_tokenizer *t, k3_error *err);

/* Renders a conversation to ids.  messages: a JSON array of messages in OpenAI's shape: role
 * (system, user, assistant, tool), content (a text or an array of text parts), name,
 * reasoning_content, tool_calls [{"id", "function": {"name", "arguments": JSON text}}],
 * tool_call_id, and tools on a system message; other members are ignored.  Nothing in it can become
 * a special token: all of it is encoded as ordinary text.  options may be NULL.
 * *ids: free with k3_free.
 * Errors: K3_ERR_FORMAT (the text names the message and the member); K3_ERR_ARGUMENT (an option);
 *         K3_ERR_UNSUPPORTED (see k3_chat_supported); K3_ERR_MEMORY. */
K3_API k3_status k3_chat_render(const k3_tokenizer *t, const char *messages, const k3_chat_options *options,
                                int32_t **ids, size_t *n, k3_error *err);

/* Takes a reply apart as its ids come.  It works on ids: a reply that quotes the format's markers as
 * text cannot fool it.  One thread at a time. */
typedef struct k3_reply k3_reply;

/* thinking: as in the options of the prompt: the reply starts in the think channel.  The tokenizer
 * must outlive it.  Errors: K3_ERR_UNSUPPORTED, K3_ERR_MEMORY. */
K3_API k3_status k3_reply_new(const k3_tokenizer *t, bool thinking, k3_reply **out, k3_error *err);
K3_API void k3_reply_free(k3_reply *r);

typedef enum k3_reply_kind {
    K3_REPLY_NOTHING = 0,   /* the id was part of the markup, or completes no character yet */
    K3_REPLY_REASONING = 1, /* text of the think channel */
    K3_REPLY_CONTENT = 2,   /* text of the answer */
    K3_REPLY_CALL = 3,      /* a tool call begins: text is the tool's name */
    K3_REPLY_ARGUMENTS = 4, /* text is the next part of the call's arguments, a JSON object */
    K3_REPLY_CALL_END = 5,  /* the call is whole; text is the last part of its arguments */
    K3_REPLY_END = 6        /* the message ended; all further ids give this */
} k3_reply_kind;

/* What one id brought.  The text is UTF-8, terminated, and valid until the next call on the reply. */
typedef struct k3_reply_event {
    k3_reply_kind kind;
    const char *text;
    size_t length;
    size_t call; /* of the kinds about calls: its number, from 0 */
} k3_reply_event;

/* Errors: K3_ERR_TOKEN, K3_ERR_MEMORY. */
K3_API k3_status k3_reply_push(k3_reply *r, int32_t id, k3_reply_event *event, k3_error *err);

/* No id will follow: keeps what a reply that was cut off had, without an unfinished marker. */
K3_API k3_status k3_reply_finish(k3_reply *r, k3_reply_event *event, k3_error *err);

/* What has come so far, terminated; owned by the reply, valid until the next push.  Never NULL. */
K3_API const char *k3_reply_reasoning(const k3_reply *r, size_t *length);
K3_API const char *k3_reply_content(const k3_reply *r, size_t *length);
K3_API size_t k3_reply_calls(const k3_reply *r);

/* Call i of k3_reply_calls: its tool, and its arguments as a JSON object.  Owned by the reply. */
K3_API const char *k3_reply_call_name(const k3_reply *r, size_t i);
K3_API const char *k3_reply_call_arguments(const k3_reply *r, size_t i);

/* ---- sampler -------------------------------------------------------------------------------- */

typedef struct k3_sampler k3_sampler;

/* Applied in this order, each to what the one before left: temperature, top_k, top_p, min_p. */
typedef struct k3_sampler_options {
    size_t size;       /* set by k3_sampler_options_init */
    float temperature; /* 1; 0 takes the most likely id, the lowest on ties */
    uint32_t top_k;    /* 0: all */
    float top_p;       /* 1: all; else the smallest set whose probability reaches it */
    float min_p;       /* 0: all; else ids at least this share of the most likely one */
    uint64_t seed;     /* the same seed and logits give the same ids */
} k3_sampler_options;

K3_API void k3_sampler_options_init(k3_sampler_options *options);

/* options may be NULL.  Errors: K3_ERR_ARGUMENT (an option out of range); K3_ERR_MEMORY. */
K3_API k3_status k3_sampler_new(const k3_sampler_options *options, k3_sampler **out, k3_error *err);
K3_API void k3_sampler_free(k3_sampler *s);

/* Never pick these ids (a copy is kept; replaces an earlier list). */
K3_API k3_status k3_sampler_ban(k3_sampler *s, const int32_t *ids, size_t n, k3_error *err);

/* Picks an id from logits [n].  Minus infinity is never picked.
 * Errors: K3_ERR_NUMERIC (a NaN or plus infinity, or nothing left to pick from). */
K3_API k3_status k3_sampler_pick(k3_sampler *s, const float *logits, size_t n, int32_t *id,
                                 k3_error *err);

#ifdef __cplusplus
}
#endif
#endif

/* Continues a text, one token at a time.
 *
 *   cc generate.c $(pkg-config --cflags --libs k3) -o generate
 *   ./generate MODEL "Once upon a time" 64
 */
#include <k3/k3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRY(call) if ((call) != K3_OK) return fprintf(stderr, "%s\n", k3_error_text(&err)), EXIT_FAILURE

int main(int argc, char **argv) {
    k3_error err;
    k3_model *model;
    k3_tokenizer *tokenizer;
    k3_session *session;
    k3_sampler *sampler;
    k3_decoder *decoder;
    int32_t *prompt, id;
    const int32_t *eos;
    size_t n, length;
    const char *text;
    if (argc != 4) {
        fprintf(stderr, "usage: %s MODEL TEXT TOKENS\n", argv[0]);
        return EXIT_FAILURE;
    }
    TRY(k3_model_open(argv[1], NULL, &model, &err));
    TRY(k3_tokenizer_open(argv[1], &tokenizer, &err));
    TRY(k3_session_new(model, &session, &err));
    TRY(k3_sampler_new(NULL, &sampler, &err));
    TRY(k3_decoder_new(tokenizer, &decoder, &err));
    TRY(k3_tokenizer_encode(tokenizer, argv[2], strlen(argv[2]), K3_ENCODE_ORDINARY, &prompt, &n, &err));
    TRY(k3_session_feed(session, prompt, n, NULL, &err));
    size_t ends = k3_model_eos_ids(model, &eos);
    for (int left = atoi(argv[3]); left > 0 && k3_session_logits(session); left--) {
        TRY(k3_sampler_pick(sampler, k3_session_logits(session), k3_model_vocab_size(model), &id, &err));
        bool ended = false;
        for (size_t e = 0; e < ends; e++) ended |= id == eos[e];
        if (ended) break;
        TRY(k3_decoder_push(decoder, id, &text, &length, &err));
        fwrite(text, 1, length, stdout);
        TRY(k3_session_feed(session, &id, 1, NULL, &err));
    }
    TRY(k3_decoder_finish(decoder, &text, &length, &err));
    printf("%.*s\n", (int)length, text);
    k3_free(prompt);
    k3_decoder_free(decoder);
    k3_sampler_free(sampler);
    k3_session_free(session);
    k3_tokenizer_close(tokenizer);
    k3_model_close(model);
    return EXIT_SUCCESS;
}

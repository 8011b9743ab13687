/* config.json: defaults, both layouts, and every contradiction named. */
#include "format/config.h"

#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The least that a flat config must say. */
static const char least[] =
    "{\"model_type\": \"kimi_linear\", \"num_hidden_layers\": 3, \"hidden_size\": 64, \"vocab_size\": 100,"
    " \"intermediate_size\": 96, \"num_attention_heads\": 2, \"kv_lora_rank\": 32, \"qk_nope_head_dim\": 16,"
    " \"qk_rope_head_dim\": 8, \"v_head_dim\": 16, \"mla_use_nope\": true,"
    " \"linear_attn_config\": {\"num_heads\": 2, \"head_dim\": 16, \"short_conv_kernel_size\": 4,"
    " \"kda_layers\": [1, 3], \"full_attn_layers\": [2]}}";

/* Fields of a MoE, merged into the least config. */
static const char moe[] = "{\"num_experts\": 12, \"num_experts_per_token\": 3, \"moe_intermediate_size\": 32}";

static k3_status parse(json_t *config, struct k3_config *c, k3_error *err) {
    char *text = json_dumps(config, JSON_COMPACT);
    k3_status status = k3_config_parse("config.json", text, strlen(text), c, err);
    free(text);
    return status;
}

/* Merges `change` (JSON text) into a config: objects field by field. */
static void merge(json_t *config, const char *change) {
    json_error_t where;
    const char *key;
    json_t *value, *changes = json_loads(change, 0, &where);
    ck_assert_msg(changes != NULL, "%s: %s", change, where.text);
    json_object_foreach(changes, key, value) {
        json_t *old = json_object_get(config, key);
        if (json_is_object(old) && json_is_object(value)) json_object_update(old, value);
        else json_object_set(config, key, value);
    }
    json_decref(changes);
}

static json_t *with(const char *change) {
    json_t *config = json_loads(least, 0, NULL);
    ck_assert_ptr_nonnull(config);
    merge(config, moe);
    merge(config, change);
    return config;
}

START_TEST(defaults) {
    struct k3_config c;
    k3_error err;
    ck_assert_msg(k3_config_parse("config.json", least, strlen(least), &c, &err) == K3_OK, "%s", err.text);
    ck_assert_str_eq(c.architecture, "kimi_linear");
    ck_assert(c.rms_norm_eps == 1e-6f && c.activation == K3_ACT_SILU && c.situ_beta == 1 && c.situ_linear_beta == 0);
    ck_assert(c.q_lora_rank == 0 && !c.mla_output_gate && !c.gate_bounded && !c.full_rank_gate);
    ck_assert(c.attn_res_block_size == 0 && c.experts == 0 && !c.tie_embeddings && !c.quantized && c.eos_count == 0);
    ck_assert(c.is_kda[0] && !c.is_kda[1] && c.is_kda[2] && !k3_config_is_moe(&c, 2));
    k3_config_clear(&c);
}
END_TEST

START_TEST(moe_defaults_and_values) {
    struct k3_config c;
    k3_error err;
    json_t *j = with("{\"eos_token_id\": [7, 8], \"activation_situ_beta\": 0, \"hidden_act\": \"situ\", \"q_lora_rank\": null,"
                     " \"top_k\": 50, \"temperature\": 3, \"linear_attn_config\": {\"gate_lower_bound\": -5}}");
    ck_assert_msg(parse(j, &c, &err) == K3_OK, "%s", err.text);
    ck_assert(c.experts == 12 && c.top_k == 3 && c.latent_size == 0 && c.shared_experts == 0 && c.first_dense == 0);
    ck_assert(c.moe_every == 1 && !c.router_softmax && c.renormalize && c.routed_scaling == 1 && c.expert_groups == 1);
    ck_assert(c.eos_count == 2 && c.eos[0] == 7 && c.eos[1] == 8 && c.situ_beta == 1 && c.activation == K3_ACT_SITU);
    ck_assert(c.gate_bounded && c.gate_lower_bound == -5 && k3_config_is_moe(&c, 0));
    k3_config_clear(&c);
    json_decref(j);
}
END_TEST

/* The released config, nested, says what section 1.2 of the specification lists. */
START_TEST(nested) {
    struct k3_config c;
    k3_error err;
    json_t *inner = with("{\"num_experts\": 12, \"first_k_dense_replace\": 1, \"attn_res_block_size\": 2}");
    json_t *j = json_pack("{s:s, s:o, s:i, s:{s:s}, s:{}}", "model_type", "kimi_k3", "text_config", inner, "eos_token_id",
                          9, "quantization_config", "format", "mxfp4-pack-quantized", "vision_config");
    ck_assert_msg(parse(j, &c, &err) == K3_OK, "%s", err.text);
    ck_assert_str_eq(c.architecture, "kimi_k3");
    ck_assert(c.quantized && c.eos_count == 1 && c.eos[0] == 9 && c.attn_res_block_size == 2);
    ck_assert(!k3_config_is_moe(&c, 0) && k3_config_is_moe(&c, 1));
    k3_config_clear(&c);
    json_object_set_new(inner, "hidden_size", json_integer(-4));
    ck_assert_int_eq(parse(j, &c, &err), K3_ERR_FORMAT);
    ck_assert_str_eq(err.text, "config.json: text_config.hidden_size: -4 is not between 1 and 1048576");
    json_decref(j);
}
END_TEST

static const struct {
    const char *change;
    k3_status status;
    const char *named[2]; /* field and value that the message must hold */
} refused[] = {
    {"{\"model_type\": \"llama\"}", K3_ERR_UNSUPPORTED, {"model_type", "llama"}},
    {"{\"model_type\": null}", K3_ERR_FORMAT, {"model_type", "missing"}},
    {"{\"model_type\": \"kimi_k3\"}", K3_ERR_FORMAT, {"text_config", "missing"}},
    {"{\"text_config\": 3}", K3_ERR_FORMAT, {"text_config", "object"}},
    {"{\"num_hidden_layers\": null}", K3_ERR_FORMAT, {"num_hidden_layers", "missing"}},
    {"{\"num_hidden_layers\": 0}", K3_ERR_FORMAT, {"num_hidden_layers", "0 is not"}},
    {"{\"num_hidden_layers\": 2}", K3_ERR_FORMAT, {"kda_layers", "3 is not"}},
    {"{\"num_hidden_layers\": 4}", K3_ERR_FORMAT, {"kda_layers", "layer 4"}},
    {"{\"num_hidden_layers\": 9000000000000000000}", K3_ERR_FORMAT, {"num_hidden_layers", "9000000000000000000"}},
    {"{\"hidden_size\": \"64\"}", K3_ERR_FORMAT, {"hidden_size", "integer"}},
    {"{\"hidden_size\": 64.5}", K3_ERR_FORMAT, {"hidden_size", "integer"}},
    {"{\"hidden_size\": [64]}", K3_ERR_FORMAT, {"hidden_size", "integer"}},
    {"{\"vocab_size\": 100000000}", K3_ERR_FORMAT, {"vocab_size", "100000000"}},
    {"{\"intermediate_size\": null}", K3_ERR_FORMAT, {"intermediate_size", "missing"}},
    {"{\"rms_norm_eps\": -1}", K3_ERR_FORMAT, {"rms_norm_eps", "-1"}},
    {"{\"rms_norm_eps\": \"small\"}", K3_ERR_FORMAT, {"rms_norm_eps", "number"}},
    {"{\"hidden_act\": \"gelu\"}", K3_ERR_UNSUPPORTED, {"hidden_act", "gelu"}},
    {"{\"hidden_act\": 1}", K3_ERR_FORMAT, {"hidden_act", "string"}},
    {"{\"activation_situ_linear_beta\": 0}", K3_ERR_FORMAT, {"activation_situ_linear_beta", "0 is not"}},
    {"{\"attn_res_block_size\": 0}", K3_ERR_FORMAT, {"attn_res_block_size", "0 is not"}},
    {"{\"tie_word_embeddings\": 1}", K3_ERR_FORMAT, {"tie_word_embeddings", "true or false"}},
    {"{\"num_attention_heads\": 0}", K3_ERR_FORMAT, {"num_attention_heads", "0 is not"}},
    {"{\"num_attention_heads\": 1000000, \"qk_nope_head_dim\": 1000000}", K3_ERR_FORMAT, {"num_attention_heads", "1000000"}},
    {"{\"kv_lora_rank\": null}", K3_ERR_FORMAT, {"kv_lora_rank", "missing"}},
    {"{\"q_lora_rank\": 0}", K3_ERR_FORMAT, {"q_lora_rank", "0 is not"}},
    {"{\"mla_use_nope\": false}", K3_ERR_UNSUPPORTED, {"mla_use_nope", "true"}},
    {"{\"mla_use_nope\": null}", K3_ERR_UNSUPPORTED, {"mla_use_nope", "true"}},
    {"{\"linear_attn_config\": null}", K3_ERR_FORMAT, {"linear_attn_config", "missing"}},
    {"{\"linear_attn_config\": []}", K3_ERR_FORMAT, {"linear_attn_config", "object"}},
    {"{\"linear_attn_config\": {\"kda_layers\": [1, 2, 3]}}", K3_ERR_FORMAT, {"full_attn_layers", "layer 2"}},
    {"{\"linear_attn_config\": {\"kda_layers\": [1, 1, 3]}}", K3_ERR_FORMAT, {"kda_layers", "twice"}},
    {"{\"linear_attn_config\": {\"kda_layers\": [1]}}", K3_ERR_FORMAT, {"kda_layers", "layer 3"}},
    {"{\"linear_attn_config\": {\"kda_layers\": [0, 1, 3]}}", K3_ERR_FORMAT, {"kda_layers", "0 is not"}},
    {"{\"linear_attn_config\": {\"kda_layers\": 3}}", K3_ERR_FORMAT, {"kda_layers", "list"}},
    {"{\"linear_attn_config\": {\"full_attn_layers\": null}}", K3_ERR_FORMAT, {"full_attn_layers", "missing"}},
    {"{\"linear_attn_config\": {\"full_attn_layers\": [2, 4]}}", K3_ERR_FORMAT, {"full_attn_layers", "4 is not"}},
    {"{\"linear_attn_config\": {\"head_dim\": 0}}", K3_ERR_FORMAT, {"linear_attn_config.head_dim", "0 is not"}},
    {"{\"linear_attn_config\": {\"num_heads\": 1000000, \"head_dim\": 4096}}", K3_ERR_FORMAT, {"num_heads", "1000000"}},
    {"{\"linear_attn_config\": {\"gate_lower_bound\": 0}}", K3_ERR_FORMAT, {"gate_lower_bound", "0"}},
    {"{\"linear_attn_config\": {\"gate_lower_bound\": 5}}", K3_ERR_FORMAT, {"gate_lower_bound", "5 is not"}},
    {"{\"num_experts\": 0}", K3_ERR_FORMAT, {"num_experts", "0 is not"}},
    {"{\"num_experts_per_token\": null}", K3_ERR_FORMAT, {"num_experts_per_token", "missing"}},
    {"{\"num_experts_per_token\": 13}", K3_ERR_FORMAT, {"num_experts_per_token", "13"}},
    {"{\"moe_intermediate_size\": null}", K3_ERR_FORMAT, {"moe_intermediate_size", "missing"}},
    {"{\"num_expert_group\": 5}", K3_ERR_FORMAT, {"num_expert_group", "5"}},
    {"{\"num_expert_group\": 4, \"topk_group\": 5}", K3_ERR_FORMAT, {"topk_group", "5"}},
    {"{\"num_expert_group\": 6, \"topk_group\": 1}", K3_ERR_FORMAT, {"num_experts_per_token", "2"}},
    {"{\"moe_layer_freq\": 0}", K3_ERR_FORMAT, {"moe_layer_freq", "0 is not"}},
    {"{\"moe_router_activation_func\": \"relu\"}", K3_ERR_UNSUPPORTED, {"moe_router_activation_func", "relu"}},
    {"{\"quantization_config\": {\"format\": \"gptq\"}}", K3_ERR_UNSUPPORTED, {"quantization_config.format", "gptq"}},
    {"{\"quantization_config\": {}}", K3_ERR_FORMAT, {"quantization_config.format", "string"}},
    {"{\"eos_token_id\": -1}", K3_ERR_FORMAT, {"eos_token_id", "-1"}},
    {"{\"eos_token_id\": [1, \"x\"]}", K3_ERR_FORMAT, {"eos_token_id", "integer"}},
};

START_TEST(contradictions) {
    struct k3_config c;
    k3_error err;
    json_t *j = with(refused[_i].change);
    ck_assert_msg(parse(j, &c, &err) == refused[_i].status, "%s: %s", refused[_i].change, err.text);
    for (int k = 0; k < 2; k++)
        ck_assert_msg(strstr(err.text, refused[_i].named[k]) != NULL, "%s: \"%s\" lacks \"%s\"", refused[_i].change, err.text,
                      refused[_i].named[k]);
    ck_assert_ptr_null(c.is_kda);
    json_decref(j);
}
END_TEST

static const char *const broken[] = {"", "{", "[]", "3", "{\"a\": 1, \"a\": 2}", "{\"model_type\": \"kimi_linear\"} x",
                                     "{\"model_type\": \"\xff\"}", "{\"hidden_size\": 1e999}"};

START_TEST(malformed) {
    struct k3_config c;
    k3_error err;
    ck_assert_int_eq(k3_config_parse("config.json", broken[_i], strlen(broken[_i]), &c, &err), K3_ERR_FORMAT);
    ck_assert_msg(strncmp(err.text, "config.json:", 12) == 0, "%s", err.text);
}
END_TEST

/* generation_config.json's ids come before config.json's. */
START_TEST(generation_config) {
    char dir[] = "/tmp/k3-test-XXXXXX", path[64];
    struct k3_config c;
    k3_error err;
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(k3_config_read(dir, &c, &err), K3_ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "config.json"));
    json_t *j = with("{\"eos_token_id\": 1}");
    snprintf(path, sizeof path, "%s/config.json", dir);
    ck_assert_int_eq(json_dump_file(j, path, 0), 0);
    ck_assert_int_eq(k3_config_read(dir, &c, &err), K3_OK);
    ck_assert(c.eos_count == 1 && c.eos[0] == 1);
    k3_config_clear(&c);
    json_decref(j);
    snprintf(path, sizeof path, "%s/generation_config.json", dir);
    j = json_pack("{s:[i,i]}", "eos_token_id", 5, 6);
    ck_assert_int_eq(json_dump_file(j, path, 0), 0);
    ck_assert_int_eq(k3_config_read(dir, &c, &err), K3_OK);
    ck_assert(c.eos_count == 2 && c.eos[1] == 6);
    k3_config_clear(&c);
    json_decref(j);
    FILE *f = fopen(path, "w");
    fputs("{\"eos_token_id\": true}", f);
    fclose(f);
    ck_assert_int_eq(k3_config_read(dir, &c, &err), K3_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(err.text, "generation_config.json: eos_token_id"));
    unlink(path);
    snprintf(path, sizeof path, "%s/config.json", dir);
    unlink(path);
    rmdir(dir);
}
END_TEST

int main(void) {
    Suite *s = suite_create("config");
    TCase *t = tcase_create("config");
    tcase_add_test(t, defaults);
    tcase_add_test(t, moe_defaults_and_values);
    tcase_add_test(t, nested);
    tcase_add_loop_test(t, contradictions, 0, sizeof refused / sizeof *refused);
    tcase_add_loop_test(t, malformed, 0, sizeof broken / sizeof *broken);
    tcase_add_test(t, generation_config);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

// Causal attention without a T x T matrix in memory: scores are made for MODEL_QUERY_BLOCK queries
// at a time. The backward pass makes them again from the log-sums that were kept (the idea of blocks is
// that of Dao 2023, "FlashAttention-2"). One task is one sample and one kv head with all queries
// that share it, so no two tasks write the same place. Keys and values are packed once for all of them.

#include "common/model/model_state.h"

#include <string.h>

struct attention_job {
    const model_t *model;
    const struct model_layer *layer;
};

// One task's place in the arrays.
struct unit {
    const model_t *model;
    size_t rows_first;          // The sample's first row
    const float *qkv;           // From that row on
    size_t width;               // W
    size_t out_width;           // Q
    size_t log_sum_first;       // Where the sample begins in log_sum
    uint32_t head_first, heads; // The query heads of this kv head
    size_t k, v;                // Columns in a row of qkv
    float *scores, *d_scores;   // [MODEL_QUERY_BLOCK][seq]
    float *keys, *values; // Packed for scores and for their gradient: [seq] columns, depth head_dim
    float *sources; // Packed for weighed sums, values forwards, keys backwards: the other way round
    float *scratch; // For gemm_run
    float scale;    // 1 / sqrt(head_dim)
};

static struct unit unit_of(const model_t *model, const struct model_layer *layer, uint32_t task,
                           uint32_t worker)
{
    const struct model_shape *shape = &model->shape;
    const uint32_t sample = task / shape->kv_heads, kv = task % shape->kv_heads;
    const uint32_t heads = shape->heads / shape->kv_heads;
    float *memory = model->attention_scratch + worker * model->attention_scratch_count;
    const size_t block = (size_t)MODEL_QUERY_BLOCK * model->seq;
    const size_t packed = model_attention_packed_count(shape, model->seq);
    return (struct unit){
        .model = model,
        .rows_first = (size_t)sample * model->seq,
        .qkv = layer->qkv + (size_t)sample * model->seq * model_qkv_width(shape),
        .width = model_qkv_width(shape),
        .out_width = model_heads_width(shape),
        .log_sum_first = (size_t)sample * shape->heads * model->seq,
        .head_first = kv * heads,
        .heads = heads,
        .k = (size_t)(shape->heads + kv) * shape->head_dim,
        .v = (size_t)(shape->heads + shape->kv_heads + kv) * shape->head_dim,
        .scores = memory,
        .d_scores = memory + block,
        .keys = memory + 2 * block,
        .values = memory + 2 * block + packed,
        .sources = memory + 2 * block + 2 * packed,
        .scratch = memory + 2 * block + 3 * packed,
        .scale = 1.0f / __builtin_sqrtf((float)shape->head_dim),
    };
}

// Keys or values of all the sample's positions, for several products.
static void pack(const struct unit *unit, enum gemm_form form, size_t column, float *to)
{
    const model_t *model = unit->model;
    const uint32_t d = model->shape.head_dim;
    const struct gemm job = { .form = form,
                              .precision = model->options.precision,
                              .n = form == GEMM_NT ? model->seq : d,
                              .k = form == GEMM_NT ? d : model->seq,
                              .b = unit->qkv + column,
                              .b_stride = unit->width };
    gemm_pack(&job, to);
}

// A piece of a row-major matrix.
struct piece {
    const float *at;
    size_t stride;
};

// The product of two pieces, within this task. `packed` is NULL, or b from pack.
static void multiply(const struct unit *unit, enum gemm_form form, bool add, size_t m, size_t n,
                     size_t k, struct piece a, struct piece b, const float *packed, float *c,
                     size_t c_stride)
{
    const model_t *model = unit->model;
    const struct gemm job = { .form = form,
                              .precision = model->options.precision,
                              .add = add,
                              .m = (uint32_t)m,
                              .n = (uint32_t)n,
                              .k = (uint32_t)k,
                              .a = a.at,
                              .a_stride = a.stride,
                              .b = b.at,
                              .b_stride = b.stride,
                              .b_packed = packed,
                              .packed_n = form == GEMM_NT ? model->seq : model->shape.head_dim,
                              .packed_k = form == GEMM_NT ? model->shape.head_dim : model->seq,
                              .c = c,
                              .c_stride = c_stride };
    gemm_run(NULL, &job, unit->scratch);
}

static void rotate(const struct unit *unit, float *qkv, bool backwards)
{
    const model_t *model = unit->model;
    const size_t head_dim = model->shape.head_dim;
    for (uint32_t h = 0; h < unit->heads; h++)
        model->kernels->rope(model->seq, head_dim, qkv + (unit->head_first + h) * head_dim,
                             unit->width, model->cosine, model->sine, backwards);
    model->kernels->rope(model->seq, head_dim, qkv + unit->k, unit->width, model->cosine,
                         model->sine, backwards);
}

static void attend(const struct unit *unit, uint32_t head, size_t first,
                   const struct model_layer *layer)
{
    const model_t *model = unit->model;
    const size_t d = model->shape.head_dim, left = model->seq - first;
    const size_t rows = left < MODEL_QUERY_BLOCK ? left : MODEL_QUERY_BLOCK, seen = first + rows;
    const float *qkv = unit->qkv;
    const struct piece q = { qkv + first * unit->width + head * d, unit->width };
    const struct piece k = { qkv + unit->k, unit->width }, v = { qkv + unit->v, unit->width };
    float *log_sum = layer->log_sum + unit->log_sum_first + head * model->seq + first;
    float *out = layer->attended + (unit->rows_first + first) * unit->out_width + head * d;
    multiply(unit, GEMM_NT, false, rows, seen, d, q, k, unit->keys, unit->scores, seen);
    model->kernels->softmax(rows, first, seen, unit->scale, unit->scores, seen, log_sum);
    multiply(unit, GEMM_NN, false, rows, d, seen, (struct piece){ unit->scores, seen }, v,
             unit->sources, out, unit->out_width);
}

static void attention_task(void *arg, uint32_t task, uint32_t worker)
{
    const struct attention_job *job = arg;
    const struct unit unit = unit_of(job->model, job->layer, task, worker);
    rotate(&unit, job->layer->qkv + unit.rows_first * unit.width, false);
    pack(&unit, GEMM_NT, unit.k, unit.keys);
    pack(&unit, GEMM_NN, unit.v, unit.sources);
    for (uint32_t h = unit.head_first; h < unit.head_first + unit.heads; h++) {
        for (size_t first = 0; first < job->model->seq; first += MODEL_QUERY_BLOCK)
            attend(&unit, h, first, job->layer);
    }
}

void model_attention(model_t *self, struct model_layer *layer)
{
    struct attention_job job = { self, layer };
    pool_run(self->pool, self->batch * self->shape.kv_heads, attention_task, &job);
}

static void attend_back(const struct unit *unit, uint32_t head, size_t first,
                        const struct model_layer *layer)
{
    const model_t *model = unit->model;
    const size_t d = model->shape.head_dim, left = model->seq - first, width = unit->width;
    const size_t out_width = unit->out_width;
    const size_t rows = left < MODEL_QUERY_BLOCK ? left : MODEL_QUERY_BLOCK, seen = first + rows;
    const float *qkv = unit->qkv;
    const struct piece q = { qkv + first * width + head * d, width };
    const struct piece k = { qkv + unit->k, width }, v = { qkv + unit->v, width };
    float *d_qkv = model->d_qkv + unit->rows_first * width;
    const float *log_sum = layer->log_sum + unit->log_sum_first + head * model->seq + first;
    const size_t out_at = (unit->rows_first + first) * out_width + head * d;
    const float *out = layer->attended + out_at;
    const struct piece d_out = { model->d_attended + out_at, out_width };
    const struct piece scores = { unit->scores, seen }, d_scores = { unit->d_scores, seen };

    multiply(unit, GEMM_NT, false, rows, seen, d, q, k, unit->keys, unit->scores, seen);
    multiply(unit, GEMM_NT, false, rows, seen, d, d_out, v, unit->values, unit->d_scores, seen);
    model->kernels->softmax_back(rows, first, seen, unit->scale, unit->scores, unit->d_scores, seen,
                                 log_sum, out, d_out.at, out_width, d);
    multiply(unit, GEMM_NN, false, rows, d, seen, d_scores, k, unit->sources,
             d_qkv + first * width + head * d, width);
    multiply(unit, GEMM_TN, true, seen, d, rows, d_scores, q, NULL, d_qkv + unit->k, width);
    multiply(unit, GEMM_TN, true, seen, d, rows, scores, d_out, NULL, d_qkv + unit->v, width);
}

static void attention_back_task(void *arg, uint32_t task, uint32_t worker)
{
    const struct attention_job *job = arg;
    const struct unit unit = unit_of(job->model, job->layer, task, worker);
    const size_t head_bytes = job->model->shape.head_dim * sizeof(float);
    float *d_qkv = job->model->d_qkv + unit.rows_first * unit.width;
    for (size_t t = 0; t < job->model->seq; t++) {
        memset(d_qkv + t * unit.width + unit.k, 0, head_bytes);
        memset(d_qkv + t * unit.width + unit.v, 0, head_bytes);
    }
    pack(&unit, GEMM_NT, unit.k, unit.keys);
    pack(&unit, GEMM_NT, unit.v, unit.values);
    pack(&unit, GEMM_NN, unit.k, unit.sources);
    for (uint32_t h = unit.head_first; h < unit.head_first + unit.heads; h++) {
        for (size_t first = 0; first < job->model->seq; first += MODEL_QUERY_BLOCK)
            attend_back(&unit, h, first, job->layer);
    }
    rotate(&unit, d_qkv, true);
}

void model_attention_back(model_t *self, const struct model_layer *layer)
{
    struct attention_job job = { self, layer };
    pool_run(self->pool, self->batch * self->shape.kv_heads, attention_back_task, &job);
}

// Two passes over the tensors: the first counts slots and tables, the second copies the tables of
// each side that occurs, once.
#include "common/optimizer/distro_plan.h"

#include <stdlib.h>
#include <string.h>

struct owner { // What plan_destroy frees; the plan is its first member
    struct plan plan;
    struct plan_part *parts;
    struct plan_table tables[DCT_SIDE_MAX + 1];
    const struct dct *dcts[DCT_SIDE_MAX + 1]; // While it is made
    float *floats;
};

// The number of a side's table; a new one at its first mention.
static uint32_t table_of(struct owner *self, const struct dct *dct)
{
    struct plan *plan = &self->plan;
    for (uint32_t i = 0; i < plan->tables_count; i++)
        if (self->tables[i].side == dct->side) return i;
    const uint64_t whole = (uint64_t)dct->side * dct->stride;
    const uint64_t half = (uint64_t)dct->half * dct->half_stride, at = plan->floats_count;
    self->dcts[plan->tables_count] = dct;
    self->tables[plan->tables_count] = (struct plan_table){ .side = dct->side,
                                                            .half = dct->half,
                                                            .stride = dct->stride,
                                                            .half_stride = dct->half_stride,
                                                            .table = at,
                                                            .even = at + whole,
                                                            .odd = at + whole + half };
    plan->floats_count += whole + 2 * half;
    return plan->tables_count++;
}

static void add_part(struct owner *self, const payload_form_t *form, uint32_t number)
{
    struct plan *plan = &self->plan;
    const struct chunks_part *part = chunks_part(payload_chunks(form), number);
    const uint32_t top_k = payload_top_k(form, part->first);
    self->parts[number] = (struct plan_part){ .begin = part->begin,
                                              .slot = plan->slots,
                                              .rows = part->rows,
                                              .columns = part->columns,
                                              .first = part->first,
                                              .count = part->count,
                                              .top_k = top_k,
                                              .row_table = table_of(self, part->row_dct),
                                              .column_table = table_of(self, part->column_dct) };
    plan->slots += (uint64_t)top_k * part->count;
    if (part->elements > plan->elements_max) plan->elements_max = part->elements;
}

static void fill_tables(struct owner *self)
{
    for (uint32_t i = 0; i < self->plan.tables_count; i++) {
        const struct dct *dct = self->dcts[i];
        const struct plan_table *table = &self->tables[i];
        const size_t half = (size_t)dct->half * dct->half_stride * sizeof(float);
        memcpy(self->floats + table->table, dct->table,
               (size_t)dct->side * dct->stride * sizeof(float));
        memcpy(self->floats + table->even, dct->even, half);
        memcpy(self->floats + table->odd, dct->odd, half);
    }
}

int plan_new(const payload_form_t *form, struct why *why, struct plan **ret_plan)
{
    const chunks_t *chunks = payload_chunks(form);
    const uint32_t parts = chunks_parts(chunks);
    struct owner *self = calloc(1, sizeof *self);
    if (self) self->parts = calloc(parts, sizeof *self->parts);
    if (self && self->parts) {
        self->plan.parts_count = parts;
        self->plan.chunks = chunks_count(chunks);
        self->plan.total = chunks_total(chunks);
        for (uint32_t i = 0; i < parts; i++) add_part(self, form, i);
        self->floats = calloc(self->plan.floats_count, sizeof *self->floats);
    }
    struct plan *plan = self ? &self->plan : NULL;
    if (!self || !self->parts || !self->floats) {
        plan_destroy(&plan);
        return why_set(why, FAULT_MEMORY, "the plan of %u tensors for the device", parts);
    }
    fill_tables(self);
    plan->parts = self->parts, plan->tables = self->tables, plan->floats = self->floats;
    *ret_plan = plan;
    return 0;
}

void plan_destroy(struct plan **self)
{
    struct owner *owner = (struct owner *)*self;
    if (!owner) return;
    free(owner->parts);
    free(owner->floats);
    free(owner);
    *self = NULL;
}

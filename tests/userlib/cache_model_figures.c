// SPDX-License-Identifier: GPL-2.0
/* The model's statistics. */
#include "cache_model.h"

#include <assert.h>
#include <string.h>

void model_add_one(struct flexmem_cache_figure *figure, uint64_t count)
{
	figure->current += count;
	figure->allocated += count;
	if (figure->peak < figure->current)
		figure->peak = figure->current;
}

void model_subtract_one(struct flexmem_cache_figure *figure, uint64_t count)
{
	assert(figure->current >= count);
	figure->current -= count;
	figure->freed += count;
}

void model_add(struct flexmem_cache_figure *figures,
	       enum flexmem_cache_pool_kind kind, uint64_t count)
{
	model_add_one(&figures[FLEXMEM_CACHE_ALL], count);
	model_add_one(&figures[kind], count);
}

void model_subtract(struct flexmem_cache_figure *figures,
		    enum flexmem_cache_pool_kind kind, uint64_t count)
{
	model_subtract_one(&figures[FLEXMEM_CACHE_ALL], count);
	model_subtract_one(&figures[kind], count);
}

static void change_to(struct flexmem_cache_figure *figures,
		      enum flexmem_cache_pool_kind kind, uint64_t now)
{
	uint64_t before = figures[kind].current;

	if (now > before)
		model_add(figures, kind, now - before);
	else if (now < before)
		model_subtract(figures, kind, before - now);
}

void model_commit(struct model *model)
{
	uint64_t count[FLEXMEM_CACHE_POOL_KINDS] = { 0 };
	uint64_t bytes[FLEXMEM_CACHE_POOL_KINDS] = { 0 };
	const struct model_segment *segment;
	size_t i;
	size_t j;

	for (i = 0; i < model->count; i++) {
		segment = model->segments[i];
		for (j = 0; j < segment->count && segment->count > 1; j++) {
			if (segment->blocks[j].state != MODEL_FREE)
				continue;
			count[segment->kind]++;
			bytes[segment->kind] += segment->blocks[j].size;
		}
	}
	for (i = FLEXMEM_CACHE_SMALL; i <= FLEXMEM_CACHE_LARGE; i++) {
		change_to(model->figures.inactive_split, i, count[i]);
		change_to(model->figures.inactive_split_bytes, i, bytes[i]);
	}
}

void model_count_alloc(struct model *model, const struct model_segment *segment,
		       const struct model_block *block)
{
	struct flexmem_cache_tag *tag = &model->tags[block->tag];
	struct flexmem_cache_statistics *f = &model->figures;

	model_add(f->allocation, segment->kind, 1);
	model_add(f->allocated_bytes, segment->kind, block->size);
	model_add(f->requested_bytes, segment->kind, block->requested);
	model_add(f->active, segment->kind, 1);
	model_add(f->active_bytes, segment->kind, block->size);
	if (block->size >= f->max_split_size)
		model_add_one(&f->oversize_allocations, 1);
	tag->allocations++;
	tag->allocated_bytes += block->size;
	tag->requested_bytes += block->requested;
	if (tag->peak_bytes < tag->allocated_bytes)
		tag->peak_bytes = tag->allocated_bytes;
}

void model_count_free(struct model *model, const struct model_segment *segment,
		      const struct model_block *block)
{
	struct flexmem_cache_tag *tag = &model->tags[block->tag];
	struct flexmem_cache_statistics *f = &model->figures;

	model_subtract(f->allocation, segment->kind, 1);
	model_subtract(f->allocated_bytes, segment->kind, block->size);
	if (block->size >= f->max_split_size)
		model_subtract_one(&f->oversize_allocations, 1);
	tag->allocations--;
	tag->allocated_bytes -= block->size;
	tag->requested_bytes -= block->requested;
}

static void each_figure(struct flexmem_cache_statistics *f,
			void (*change)(struct flexmem_cache_figure *figure))
{
	size_t count = offsetof(struct flexmem_cache_statistics,
				max_split_size) / sizeof(f->allocation[0]);
	struct flexmem_cache_figure *figures = f->allocation;
	size_t i;

	for (i = 0; i < count; i++)
		change(&figures[i]);
}

static void forget_peak(struct flexmem_cache_figure *figure)
{
	figure->peak = figure->current;
}

static void forget_sums(struct flexmem_cache_figure *figure)
{
	figure->allocated = 0;
	figure->freed = 0;
}

void model_reset_peaks(struct model *model)
{
	size_t i;

	each_figure(&model->figures, forget_peak);
	for (i = 0; i < MODEL_TAGS; i++)
		model->tags[i].peak_bytes = model->tags[i].allocated_bytes;
}

void model_reset_accumulated(struct model *model)
{
	struct flexmem_cache_statistics *f = &model->figures;
	uint64_t max_split = f->max_split_size;

	each_figure(f, forget_sums);
	memset(&f->max_split_size, 0,
	       sizeof(*f) - offsetof(struct flexmem_cache_statistics,
				     max_split_size));
	f->max_split_size = max_split;
}

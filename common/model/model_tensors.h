#pragma once
// model_tensors -- the layout (common/vector/layout.h) of a model's parameters, by which its files
// are read and written.

#include "common/model/model_layout.h"
#include "common/vector/layout.h"

// Fills *ret_layout with the tensors of the shape in their order, float32. `tensors` is memory for
// model_tensor_count of them and belongs to the layout until the caller frees it. The shape has
// passed model_shape_check. The faults are those of layout_add_matrix.
int model_tensors_layout(const struct model_shape *shape, struct layout_tensor *tensors,
                         struct why *why, struct layout *ret_layout);

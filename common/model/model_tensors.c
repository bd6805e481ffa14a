#include "common/model/model_tensors.h"

int model_tensors_layout(const struct model_shape *shape, struct layout_tensor *tensors,
                         struct why *why, struct layout *ret_layout)
{
    const uint32_t count = model_tensor_count(shape);
    int rc = 0;
    layout_init(ret_layout, tensors, count);
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        const struct model_tensor tensor = model_tensor_at(shape, i);
        rc = tensor.cols ? layout_add_matrix(ret_layout, tensor.name, tensor.rows, tensor.cols,
                                             LAYOUT_F32, why)
                         : layout_add_vector(ret_layout, tensor.name, tensor.rows, LAYOUT_F32, why);
    }
    return rc;
}

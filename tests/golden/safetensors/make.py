# Writes tiny.safetensors with Hugging Face's package: safetensors 0.8.0 and NumPy, python3 make.py.
# With a file as argument, reads that one and prints it: so that package and ours can be compared.
import sys
import numpy as np
from safetensors import TensorSpec, deserialize, safe_open, serialize_file

def spec(dtype, array):
    return TensorSpec(dtype=dtype, shape=list(array.shape), data_ptr=array.ctypes.data,
                      data_len=array.nbytes)

def bf16(values):       # NumPy has no bfloat16: the upper half of values that need no more
    bits = np.array(values, dtype="<f4").view("<u4")
    assert not (bits & 0xffff).any()
    return (bits >> 16).astype("<u2")

def show(path):
    with safe_open(path, framework="numpy") as file:
        print(file.metadata())
    with open(path, "rb") as file:
        for name, tensor in sorted(deserialize(file.read())):
            print(name, tensor["dtype"], tensor["shape"], bytes(tensor["data"]).hex())

def make(path):
    wide = np.array([[0.5, -0.0, 1e-45], [3.4028235e38, -1.25, 0.1]], dtype="<f4")
    half = np.array([[1.0], [-2.5], [65504.0], [6e-8]], dtype="<f2")
    brain = bf16([1.0, -3.5, 2.0 ** -120])
    serialize_file({"model.norm.weight": spec("bfloat16", brain),
                    "model.embed.weight": spec("float32", wide),
                    "model.half.weight": spec("float16", half)},
                   path, {"format": "pt", "made_by": "make.py"})

if len(sys.argv) > 1:
    show(sys.argv[1])
else:
    make("tiny.safetensors")

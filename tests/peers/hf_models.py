"""Small models of the Llama family with random numbers, made by transformers: what the tests of
folders and gradients have in common."""
import numpy
import torch
import transformers

LLAMA3 = {"rope_type": "llama3", "rope_theta": 5000.0, "factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 32}
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0,
        "original_max_position_embeddings": 32, "beta_fast": 4.0, "beta_slow": 1.0}
LINEAR = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.5}


def tokens(count, vocab):
    """The same everywhere, with every token about as often."""
    return numpy.array([(i * i * 7 + i * 3 + 1) % vocab for i in range(count)], dtype="<u4")


def config(family="llama", **changes):
    fields = dict(vocab_size=61, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                  num_key_value_heads=2, intermediate_size=48, max_position_embeddings=128,
                  rms_norm_eps=1e-5)
    if family == "mistral":
        fields["sliding_window"] = None
    fields.update(changes)
    make = transformers.LlamaConfig if family == "llama" else transformers.MistralConfig
    return make(**fields)


def model(config, seed=1):
    """Random weights large enough for attention far from uniform and logits far from zero."""
    torch.manual_seed(seed)
    made = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if "norm" in name:
                parameter.add_(0.2 * torch.randn_like(parameter))
            else:
                parameter.copy_(torch.randn_like(parameter) * 2.0 / parameter.shape[-1] ** 0.5)
    return made.eval()


def logits(model, ids):
    with torch.no_grad():
        return model(torch.from_numpy(ids.astype(numpy.int64))[None]).logits[0].float().numpy()

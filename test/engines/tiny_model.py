"""Writes a Llama of random weights, under two megabytes, with a tokenizer of bytes: tiny_model.py FOLDER RANGE

RANGE is the standard deviation of the weights. With 0.5 the best token is far ahead of the second, so that rounding
never changes a greedy choice; with 0.06 the tokens are nearly equally likely.
"""

import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

CONTEXT = 131_072

folder, initializer_range = sys.argv[1], float(sys.argv[2])
torch.manual_seed(1)

alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
vocabulary = {token: index for index, token in enumerate(["<s>", "</s>", *alphabet])}
tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
fast = PreTrainedTokenizerFast(
    tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", model_max_length=CONTEXT
)
fast.chat_template = (
    "{% for message in messages %}[{{ message['role'] }}]{{ message['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)
fast.save_pretrained(folder)

config = LlamaConfig(
    vocab_size=len(vocabulary),
    hidden_size=128,
    intermediate_size=256,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=2,
    max_position_embeddings=CONTEXT,
    tie_word_embeddings=False,
    bos_token_id=0,
    eos_token_id=1,
    initializer_range=initializer_range,
)
LlamaForCausalLM(config).save_pretrained(folder)

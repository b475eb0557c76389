"""A tokenizer of bytes in place of the tokenizers of Qwen models, which transformers loads from a hub otherwise.

Bytes, WORDS and CONTROL have the same ids as in Qwen3, since tests of miles name them. Each other word has one token for
each byte.
"""

import json
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

# Words by id. A space is written as in the byte-level alphabet.
WORDS = {374: "Ġis", 785: "The", 3838: "What", 4226: "Ġanswer", 79075: "boxed"}
MARKS = {151643: "<|endoftext|>", 151644: "<|im_start|>", 151645: "<|im_end|>"}
TAGS = {
    **{151657: "<tool_call>", 151658: "</tool_call>", 151665: "<tool_response>", 151666: "</tool_response>"},
    **{151667: "<think>", 151668: "</think>"},
}
# The first characters of WORDS have ids from here.
FIRST_PART = 100_000


def build():
    tokens = dict(enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))) | WORDS | MARKS | TAGS
    merges = []
    for word in WORDS.values():
        for end in range(2, len(word) + 1):
            merges.append((word[: end - 1], word[end - 1]))
            if end < len(word):
                tokens[FIRST_PART + len(merges)] = word[:end]
    # The library warns of each id without a token.
    vocabulary = {tokens.get(i, f"unused {i}"): i for i in range(max(tokens) + 1)}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    for i, token in (MARKS | TAGS).items():
        tokenizer.add_tokens([AddedToken(token, normalized=False, special=i in MARKS)])
    return tokenizer


def write(folder, template):
    """Writes a checkpoint without weights. template: text of its chat template."""
    folder = Path(folder)
    folder.mkdir(parents=True)
    build().save(str(folder / "tokenizer.json"))
    marks = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False, **marks}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    (folder / "chat_template.jinja").write_text(template)
    (folder / "config.json").write_text(json.dumps({"model_type": "qwen3", "num_hidden_layers": 28}))

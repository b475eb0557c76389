"""Calls of the client of OpenAI, by name: openai_client.py CALL BASE_URL. Prints the replies that the client has read
as JSON."""

import json
import sys

import openai

CALL, BASE_URL = sys.argv[1:]
COMPLETION = {
    "model": "simulated",
    "prompt": "How many clips?",
    "max_tokens": 6,
    "seed": 7,
    "logprobs": 0,
    "extra_body": {"return_token_ids": True},
}
CHAT = {
    "model": "simulated",
    "messages": [{"role": "user", "content": "How many clips?"}],
    "max_tokens": 6,
    "seed": 7,
    "logprobs": True,
}


def client(**options):
    return openai.OpenAI(base_url=BASE_URL, api_key="none", **options)


def completion(one):
    answer = one.completions.create(**COMPLETION)
    choice = answer.choices[0]
    return {
        "text": choice.text,
        "finish_reason": choice.finish_reason,
        "token_ids": choice.model_extra["token_ids"],
        "logprobs": len(choice.logprobs.token_logprobs),
        "usage": answer.usage.completion_tokens,
    }


def completions():
    one = client()
    whole = completion(one)
    streamed = "".join(chunk.choices[0].text for chunk in one.completions.create(**COMPLETION, stream=True))
    return {"whole": whole, "streamed": {"text": streamed}}


def chat():
    one = client()
    choice = one.chat.completions.create(**CHAT).choices[0]
    whole = {
        "text": choice.message.content,
        "finish_reason": choice.finish_reason,
        "logprobs": len(choice.logprobs.content),
    }
    chunks = one.chat.completions.create(**CHAT, stream=True)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    return {"whole": whole, "streamed": {"text": text}}


def tools():
    one = client()
    tool = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}
    options = {**CHAT, "tools": [tool]}
    [call] = one.chat.completions.create(**options).choices[0].message.tool_calls
    deltas = [chunk.choices[0].delta for chunk in one.chat.completions.create(**options, stream=True) if chunk.choices]
    parts = [part for delta in deltas for part in delta.tool_calls or []]
    streamed = "".join(part.function.arguments or "" for part in parts)
    return {"name": call.function.name, "arguments": [call.function.arguments, streamed]}


def errors():
    one = client(max_retries=0)
    refused = []
    for options in ({"n": 10_000}, {"max_tokens": 200_000}, {"temperature": -1}):
        try:
            one.completions.create(**{**COMPLETION, **options})
        except openai.APIStatusError as error:
            refused.append([type(error).__name__, error.status_code, error.param])
    return {"models": [model.id for model in one.models.list()], "refused": refused}


def timeout():
    return {"whole": completion(client(timeout=1, max_retries=50, default_headers={"X-Session-ID": "s"}))}


CALLS = {"completions": completions, "chat": chat, "tools": tools, "errors": errors, "timeout": timeout}
print(json.dumps(CALLS[CALL]()))

"""The client of Anthropic: anthropic_client.py BASE_URL. Prints the messages that it has read as JSON."""

import json
import sys

import anthropic

[BASE_URL] = sys.argv[1:]
MESSAGE = {"model": "simulated", "messages": [{"role": "user", "content": "How many clips?"}], "max_tokens": 6}
TOOL = {"name": "search", "description": "Searches.", "input_schema": {"type": "object"}}

client = anthropic.Anthropic(base_url=BASE_URL, api_key="none", max_retries=0)


def summary(message):
    return [message.stop_reason, message.usage.output_tokens, [block.type for block in message.content]]


whole = client.messages.create(**MESSAGE)
with client.messages.stream(**MESSAGE) as stream:
    text = "".join(stream.text_stream)
    streamed = stream.get_final_message()
tool = client.messages.create(**MESSAGE, tools=[TOOL], tool_choice={"type": "any"})
try:
    client.messages.create(**{**MESSAGE, "max_tokens": 0})
except anthropic.APIStatusError as error:
    refused = [type(error).__name__, error.status_code]
print(
    json.dumps(
        {
            "whole": summary(whole),
            "streamed": summary(streamed),
            "texts": [streamed.content[0].text, text],
            "tool": [block.type for block in tool.content],
            "count": client.messages.count_tokens(model="simulated", messages=MESSAGE["messages"]).input_tokens,
            "refused": refused,
        }
    )
)

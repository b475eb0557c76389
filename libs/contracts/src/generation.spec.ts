import { describe, expect, it } from 'vitest';
import { findPromptFault, isMultimodal, textOfPrompt } from './generation';

const user = (content: unknown) => ({ messages: [{ role: 'user', content }] });

describe('the contents of a prompt', () => {
  it.each([
    [{ text: 'a' }],
    [{ promptTokenIds: [0, 2 ** 31 - 1] }],
    [user('a')],
    [
      user([
        { type: 'text', text: 'a' },
        { type: 'image_url', image_url: { url: 'http://x/y.png' } },
      ]),
    ],
    [{ messages: [{ role: 'assistant', content: null, tool_calls: [{ id: 'c' }] }] }],
    [{ messages: [{ role: 'assistant', tool_calls: [{ id: 'c' }] }] }],
    [{ text: 'a', engineFields: { lora_path: 'l', sampling_params: { regex: 'x' } } }],
  ])('may be %j', (prompt) => expect(findPromptFault(prompt)).toBeUndefined());

  it.each([
    [{}, '', /exactly one/],
    [{ text: 'a', promptTokenIds: [1] }, '', /exactly one/],
    [{ text: '' }, '', /empty/],
    [{ text: 7 }, 'text', /string/],
    [{ txt: 'a' }, 'txt', /unknown/],
    [{ promptTokenIds: [1.5] }, 'promptTokenIds', /token ids/],
    [{ promptTokenIds: [2 ** 31] }, 'promptTokenIds', /token ids/],
    [{ messages: {} }, 'messages', /list/],
    [{ messages: [null] }, 'messages.0', /object/],
    [{ messages: [{ content: 'a' }] }, 'messages.0.role', /text/],
    [user(null), 'messages.0.content', /missing/],
    [user(7), 'messages.0.content', /text, a list/],
    [user([{ type: 'text' }]), 'messages.0.content.0', /text for type text/],
    [{ text: 'a', engineFields: { stream: true } }, 'engineFields.stream', /set by Broomwagon/],
    [{ text: 'a', engineFields: { sampling_params: { n: 2 } } }, 'engineFields.sampling_params.n', /set by/],
  ])('may not be %j', (prompt, field, reason) => {
    expect(findPromptFault(prompt)).toEqual({ field, reason: expect.stringMatching(reason) as string });
  });

  it('are multimodal with parts that are not text, and their text is the text of all parts', () => {
    const parts = [{ type: 'text', text: 'a' }, { type: 'image_url' }, { type: 'text', text: 'b' }];
    expect(isMultimodal({ messages: [{ role: 'user', content: parts }] })).toBe(true);
    expect(isMultimodal({ messages: [{ role: 'user', content: [parts[0]!] }] })).toBe(false);
    expect(isMultimodal({ text: 'a', engineFields: { image_data: ['x'] } })).toBe(true);
    expect(
      textOfPrompt({
        messages: [
          { role: 'user', content: parts },
          { role: 'a', content: null },
        ],
      }),
    ).toBe('ab');
    expect(textOfPrompt({ promptTokenIds: [1] })).toBe('');
  });
});

import { describe, expect, it } from 'vitest';
import { formatJson, keepListJson } from './list-json';

describe('formatJson', () => {
  it('writes a list as its JSON came, beside all other fields', () => {
    const ids = [1, 2];
    keepListJson(ids, Buffer.from('[1,  2]'));
    const body = { 'ré"id': 'ü', input_ids: ids, others: [3], absent: undefined };
    expect(String(formatJson(body))).toBe('{"input_ids":[1,  2],"ré\\"id":"ü","others":[3]}');
    expect(String(formatJson({ prompt: ids }))).toBe('{"prompt":[1,  2]}');
  });

  it('writes a body without such a list as JSON.stringify does', () => {
    const body = { input_ids: [1, 2], absent: undefined };
    expect(formatJson(body)).toBe(JSON.stringify(body));
    expect(formatJson({})).toBe('{}');
  });
});

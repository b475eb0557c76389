import * as fc from 'fast-check';
import { expect, inject, it } from 'vitest';
import { normalizeBaseUrl, toServerId } from './base-url';

it.each([
  ['http://127.0.0.1:8000', '127.0.0.1-8000'],
  ['http://engine-1:8000', 'engine-1-8000'],
  ['http://vllm-0.vllm.svc.cluster.local:8000', 'vllm-0.vllm.svc.cluster.local-8000'],
  ['http://vllm-0', 'vllm-0'],
  ['http://engine', 'engine'],
])('the id of %s stays %s', (url, id) => {
  expect(toServerId(url)).toBe(id);
});

it.each([
  'http://127.0.0.1:31231/',
  'http://127.0.0.1:31231/v1',
  'http://127.0.0.1:31231/v1/',
  'http://127.0.0.1:31231//v1//',
  'http://localhost:31231',
  'HTTP://LocalHost:31231',
  'http://127.0.0.1:031231',
  'http://0x7f.1:31231',
  'http://[::ffff:127.0.0.1]:31231',
])('%s is the engine at http://127.0.0.1:31231', (url) => {
  expect([normalizeBaseUrl(url), toServerId(url)]).toEqual(['http://127.0.0.1:31231', '127.0.0.1-31231']);
});

it('keeps addresses of IPv6 and paths, without slashes and /v1 at the end', () => {
  expect(normalizeBaseUrl('http://[0:0:0:0:0:0:0:1]:80/')).toBe('http://[::1]');
  expect(normalizeBaseUrl('https://Gw:443/engines/A/v1/')).toBe('https://gw/engines/A');
});

it.each(['http://u:p@a', 'http://a?x=1', 'http://a#f', 'ftp://a', 'a:8000', 'nothing'])('refuses %s', (url) => {
  expect(() => normalizeBaseUrl(url)).toThrow(
    expect.objectContaining({ code: 'VALIDATION_FAILED', field: 'endpoint' }) as Error,
  );
});

it.each([
  ['http://gw/engine-1', 'http://gw/engine/1'],
  ['http://gw:8000/a_b', 'http://gw:8000/a-b'],
  ['http://host-8000', 'http://host:8000'],
  ['http://a/b', 'https://a/b'],
  ['http://[2001:db8::1:2]:8000', 'http://[2001:db8:1::2]:8000'],
  ['http://[fd00:0:0:1::5]:8000', 'http://[fd00::1:0:0:5]:8000'],
  [`http://a/${'x'.repeat(200)}1`, `http://a/${'x'.repeat(200)}2`],
])('%s and %s have two ids', (one, other) => {
  expect(toServerId(one)).not.toBe(toServerId(other));
  expect(Math.max(toServerId(one).length, toServerId(other).length)).toBeLessThanOrEqual(128);
});

it('gives two base URLs two ids, and all spellings of one base URL one id', () => {
  const label = fc.stringMatching(/^[a-z0-9-]{1,4}$/);
  const host = fc.oneof(
    label,
    fc.ipV4(),
    fc.ipV6().map((address) => `[${address}]`),
    fc.constant('localhost'),
  );
  const part = fc.stringMatching(/^[a-b0-1._-]{0,3}$/);
  const url = fc
    .tuple(
      fc.constantFrom('http', 'https', 'HTTP'),
      host,
      fc.constantFrom('', ':80', ':443', ':1', ':08000'),
      fc.array(part, { maxLength: 3 }),
      fc.constantFrom('', '/', '/v1', '/v1/'),
    )
    .map(
      ([scheme, name, port, path, end]) => `${scheme}://${name}${port}${path.map((one) => `/${one}`).join('')}${end}`,
    )
    .filter((text) => URL.canParse(text));
  fc.assert(
    fc.property(fc.array(url, { minLength: 2, maxLength: 40 }), (urls) => {
      const ids = new Map<string, string>();
      for (const text of urls) {
        const baseUrl = normalizeBaseUrl(text);
        expect(normalizeBaseUrl(baseUrl)).toBe(baseUrl);
        const id = toServerId(text);
        expect(ids.get(id) ?? baseUrl).toBe(baseUrl);
        ids.set(id, baseUrl);
        expect(toServerId(baseUrl)).toBe(id);
      }
    }),
    { seed: inject('seed'), numRuns: 200 * inject('runsFactor') },
  );
});

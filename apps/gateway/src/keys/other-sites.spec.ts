import { expect, it } from 'vitest';
import { refuseOtherSites } from './other-sites';

it.each([
  [{}],
  [{ host: '127.0.0.1:30000' }],
  [{ host: '[::1]:30000' }],
  [{ host: 'localhost', origin: 'http://localhost:3000', 'sec-fetch-site': 'same-site' }],
  [{ host: '127.0.0.1:30000', origin: 'http://localhost:3000', 'sec-fetch-site': 'cross-site' }],
])('takes requests of programs and pages of this machine: %o', (headers) => {
  expect(() => refuseOtherSites(headers)).not.toThrow();
});

it.each([
  [{ host: 'localhost', origin: 'https://example.org' }],
  [{ host: 'localhost', origin: 'null' }],
  [{ host: 'localhost', origin: 'http://localhost.example.org' }],
  [{ host: 'localhost', 'sec-fetch-site': 'cross-site' }],
  [{ host: 'localhost', origin: 'https://example.org', 'sec-fetch-site': 'same-origin' }],
  [{ host: 'rebound.example.org:30000' }],
  [{ host: '127.0.0.1.example.org' }],
  [{ host: '10.0.0.1' }],
  [{ host: 'a b' }],
])('refuses pages of other sites, and other names: %o', (headers) => {
  expect(() => refuseOtherSites(headers)).toThrow(/API_KEYS=off/);
});

it('takes the name of PUBLIC_URL as Host, with any port, and pages of its address only', () => {
  const publicUrl = 'https://Gateway.example/v1';
  expect(() => refuseOtherSites({ host: 'gateway.example' }, publicUrl)).not.toThrow();
  expect(() => refuseOtherSites({ host: 'gateway.example:8443' }, publicUrl)).not.toThrow();
  expect(() => refuseOtherSites({ host: 'localhost' }, publicUrl)).not.toThrow();
  const own = { host: 'gateway.example', origin: 'https://gateway.example', 'sec-fetch-site': 'same-origin' };
  expect(() => refuseOtherSites(own, publicUrl)).not.toThrow();
  expect(() => refuseOtherSites(own)).toThrow(/API_KEYS=off/);
  for (const headers of [
    { ...own, origin: 'http://gateway.example' },
    { ...own, origin: 'https://gateway.example:8443' },
    { ...own, origin: 'https://a.gateway.example' },
    { host: 'a.gateway.example' },
    { host: '' },
    { host: 'gateway.example', origin: 'https://example.org' },
    { host: 'gateway.example', 'sec-fetch-site': 'cross-site' },
  ]) {
    expect(() => refuseOtherSites(headers, publicUrl)).toThrow(/API_KEYS=off/);
  }
});

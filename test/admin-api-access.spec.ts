import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '@broomwagon/platform';
import { flushPrefix, TEST_CERTIFICATE, TEST_KEY, testPool, testRedisUrl } from '@broomwagon/testing';
import { exportJWK, exportSPKI, generateKeyPair, type KeyLike, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { AdminApiConfig } from '../apps/admin-api/src/admin-api.config';
import { AdminApi } from './system/admin-api';

const { pool: prefix } = testPool();
afterAll(() => flushPrefix(testRedisUrl(), `${prefix}:`));

describe('a JWT of the issuer', () => {
  let issuer: string;
  let server: Server;
  let keys: { privateKey: KeyLike; publicKey: KeyLike };
  let others: typeof keys;
  let api: AdminApi;
  /** Paths of the requests that the issuer has answered. */
  const asked: string[] = [];

  beforeAll(async () => {
    keys = await generateKeyPair('ES256');
    others = await generateKeyPair('ES256');
    const jwk = { ...(await exportJWK(keys.publicKey)), kid: 'k1', alg: 'ES256' };
    server = createServer(({ url = '' }, response) => {
      asked.push(url);
      const body = url.includes('openid') ? { issuer, jwks_uri: `${issuer}/keys` } : { keys: [jwk] };
      response.setHeader('Content-Type', 'application/json').end(JSON.stringify(body));
    });
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    api = await AdminApi.start(prefix, { oidcIssuer: issuer, oidcPoolsClaim: 'pools' });
  });
  afterAll(async () => {
    await api?.close();
    server?.close();
  });

  interface Changes {
    claims?: object;
    audience?: string | string[];
    issuer?: string;
    /** Time until the token expires; null: it never expires. */
    expires?: string | null;
    kid?: string;
    key?: KeyLike | Uint8Array;
    alg?: string;
  }
  const jwt = (changes: Changes = {}): Promise<string> => {
    const { expires = '5m' } = changes;
    const unsigned = new SignJWT({ roles: ['broomwagon-operator'], pools: ['p1'], ...changes.claims })
      .setProtectedHeader({ alg: changes.alg ?? 'ES256', kid: changes.kid ?? 'k1' })
      .setSubject('somebody')
      .setIssuer(changes.issuer ?? issuer)
      .setAudience(changes.audience ?? 'broomwagon');
    if (expires !== null) unsigned.setExpirationTime(expires);
    return unsigned.sign(changes.key ?? keys.privateKey);
  };
  const fetchStatus = async (token: string, path = '/pools') =>
    (await api.send('GET', path, undefined, { token })).status;

  it('has the role and the pools of its claims', async () => {
    const token = await jwt();
    expect(await fetchStatus(token)).toBe(200);
    expect(await fetchStatus(token, '/pools/p2/config')).toBe(403);
    expect(await fetchStatus(token, '/tokens')).toBe(403);
    expect(await fetchStatus(await jwt({ claims: { roles: 'x broomwagon-viewer' } }))).toBe(200);
    expect(await fetchStatus(await jwt({ claims: { roles: ['admin'] } }))).toBe(403);
    expect(await fetchStatus(await jwt({ claims: { pools: undefined } }), '/pools/p1/config')).toBe(403);
    expect(await fetchStatus(await jwt({ audience: ['another', 'broomwagon'] }))).toBe(200);
    expect(asked.filter((path) => path === '/keys')).toHaveLength(1);
  });

  it('is refused when it is of another issuer, audience, key or algorithm, or has expired', async () => {
    const wrong = await Promise.all([
      jwt({ audience: 'another' }),
      jwt({ issuer: 'http://127.0.0.1:1' }),
      jwt({ expires: '-5m' }),
      jwt({ key: others.privateKey }),
      jwt({ key: new Uint8Array(32), alg: 'HS256' }),
      // This token is signed with the public key, which everybody has, as a shared secret.
      jwt({ key: new TextEncoder().encode(await exportSPKI(keys.publicKey)), alg: 'HS256' }),
      jwt({ kid: 'unknown' }),
      jwt({ expires: null }),
      jwt({ claims: { padding: 'x'.repeat(5_000) } }),
    ]);
    const [head, body] = (await jwt()).split('.');
    const none = Buffer.from('{"alg":"none"}').toString('base64url');
    wrong.push(`${none}.${body}.`, `${none}.${body}.AA`, `${head}.${body}.AA`);
    for (const token of wrong) expect(await fetchStatus(token), token).toBe(401);
  });

  it('is accepted with the keys that are known, also after a JWT with an unknown key while the issuer is broken', async () => {
    let isBroken = false;
    const jwk = { ...(await exportJWK(keys.publicKey)), kid: 'k1', alg: 'ES256' };
    const breaking = createServer(({ url = '' }, response) => {
      const address = `http://127.0.0.1:${(breaking.address() as AddressInfo).port}`;
      if (isBroken) response.statusCode = 500;
      const body = url.includes('openid') ? { issuer: address, jwks_uri: `${address}/keys` } : { keys: [jwk] };
      response.end(isBroken ? '' : JSON.stringify(body));
    });
    await new Promise<void>((listening) => breaking.listen(0, '127.0.0.1', listening));
    const address = `http://127.0.0.1:${(breaking.address() as AddressInfo).port}`;
    const replica = await AdminApi.start(prefix, { oidcIssuer: address });
    const status = async (kid: string) => {
      const token = await jwt({ issuer: address, kid });
      return (await replica.send('GET', '/pools', undefined, { token })).status;
    };
    expect(await status('k1')).toBe(200);
    isBroken = true;
    // The API fetches keys again after half a minute at the earliest.
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 60_000 });
    expect([await status('unknown'), await status('k1')]).toEqual([503, 200]);
    vi.useRealTimers();
    await replica.close();
    breaking.close();
  });

  it('is answered 503 while the issuer does not return its keys', async () => {
    const broken = createServer(({ url = '' }, response) => {
      const address = `http://127.0.0.1:${(broken.address() as AddressInfo).port}`;
      if (!url.includes('openid')) response.statusCode = 500;
      response.end(JSON.stringify({ issuer: address, jwks_uri: `${address}/keys` }));
    });
    await new Promise<void>((listening) => broken.listen(0, '127.0.0.1', listening));
    const address = `http://127.0.0.1:${(broken.address() as AddressInfo).port}`;
    const without = await AdminApi.start(prefix, { oidcIssuer: address });
    const answer = await without.send('GET', '/pools', undefined, { token: await jwt({ issuer: address }) });
    expect([answer.status, answer.body.code]).toEqual([503, 'UNAVAILABLE']);
    await without.close();
    broken.close();
  });

  it('is answered 503 while the issuer does not answer, and tokens of our own are not affected', async () => {
    const away = await AdminApi.start(prefix, { oidcIssuer: 'http://127.0.0.1:1' });
    const answer = await away.send('GET', '/pools', undefined, { token: await jwt() });
    expect([answer.status, answer.body.code, answer.body.retryable]).toEqual([503, 'UNAVAILABLE', true]);
    expect((await away.send('GET', '/pools')).status).toBe(200);
    await away.close();
  });
});

describe('TLS', () => {
  const folder = mkdtempSync(join(tmpdir(), 'broomwagon-admin-'));
  const [cert, key] = [join(folder, 'cert'), join(folder, 'key')];
  writeFileSync(cert, TEST_CERTIFICATE);
  writeFileSync(key, TEST_KEY);
  afterAll(() => rmSync(folder, { recursive: true }));

  it('is spoken with a certificate, and then plain HTTP is not', async () => {
    const api = await AdminApi.start(prefix, { httpTlsCert: cert, httpTlsKey: key });
    const url = api.url.replace('http:', 'https:');
    const status = await new Promise<number>((answered, failed) => {
      const sent = request(`${url}/health`, { ca: TEST_CERTIFICATE, servername: 'localhost' }, (response) => {
        response.resume();
        answered(response.statusCode!);
      });
      sent.on('error', failed).end();
    });
    expect(status).toBe(200);
    await expect(fetch(`${api.url}/health`)).rejects.toThrow();
    await api.close();
  });

  it.each([
    [{ HTTP_TLS_CERT: cert }, /HTTP_TLS_CERT: needs HTTP_TLS_KEY/],
    [{ HTTP_TLS_KEY: key }, /HTTP_TLS_KEY: needs HTTP_TLS_CERT/],
    [{ HTTP_TLS_CERT: '/nowhere', HTTP_TLS_KEY: key }, /HTTP_TLS_CERT: must be the path of a readable file/],
    [{ OIDC_ISSUER: 'http://example.com' }, /OIDC_ISSUER: must be an https address/],
    [{ ADMIN_TOKEN_SHA256: 'secret' }, /ADMIN_TOKEN_SHA256: must be SHA-256/],
  ])('is refused at start when it cannot be honoured: %o', (env, says) => {
    expect(() => loadConfig(AdminApiConfig, { env })).toThrow(says);
  });
});

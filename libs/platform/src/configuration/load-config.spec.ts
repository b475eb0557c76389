import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { IsIn } from 'class-validator';
import { describe, expect, it } from 'vitest';
import { describeConfig, printedConfig } from './describe-config';
import { Env } from './env.decorator';
import { ConfigurationError, loadConfig } from './load-config';
import { ServiceConfig } from './service.config';

class ExampleConfig extends ServiceConfig {
  @Env('BROOMWAGON_CONCURRENCY', 'requests at once', { min: 1 })
  concurrency: number = 8;

  @Env('STALL_MS', 'stall deadline')
  stallMs: number = 1_000;

  @Env('VERBOSE', 'more logs')
  @IsIn([true, false])
  verbose: boolean = false;

  @Env('API_KEY', 'key', { isSecret: true })
  apiKey?: string;
}

const listProblems = (env: Record<string, string>, file?: string): Record<string, string> => {
  try {
    loadConfig(ExampleConfig, { env, file });
  } catch (error) {
    const { problems } = error as ConfigurationError;
    return Object.fromEntries(problems.map(({ variable, reason }) => [variable, reason]));
  }
  return {};
};
const fileWith = (content: unknown): string => {
  const path = join(mkdtempSync(join(tmpdir(), 'broomwagon-config-')), 'config.json');
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
};

describe('loadConfig', () => {
  it('has defaults for everything', () => {
    const config = loadConfig(ExampleConfig, { env: {} });
    expect(config).toMatchObject({ natsUrl: 'nats://127.0.0.1:4222', concurrency: 8, shutdownTimeoutMs: 25_000 });
    expect(config.servedPools()).toBe('*');
  });

  it('reads numbers, booleans, lists and durations from text', () => {
    const env = { BROOMWAGON_CONCURRENCY: '3', STALL_MS: '1.5s', VERBOSE: 'true', POOLS: 'a, b', NATS_URL: '' };
    const config = loadConfig(ExampleConfig, { env });
    expect(config).toMatchObject({ concurrency: 3, stallMs: 1_500, verbose: true, pools: ['a', 'b'] });
    expect(config.natsUrl).toBe('nats://127.0.0.1:4222');
  });

  it('reads the file that CONFIG_FILE names, and prefers the values of the environment', () => {
    const CONFIG_FILE = fileWith({ BROOMWAGON_CONCURRENCY: 5, POOLS: ['x'], STALL_MS: '2m' });
    const config = loadConfig(ExampleConfig, { env: { CONFIG_FILE, BROOMWAGON_CONCURRENCY: '6' } });
    expect(config).toMatchObject({ concurrency: 6, pools: ['x'], stallMs: 120_000 });
    const sources = Object.fromEntries(describeConfig(config).map((row) => [row.variable, row.source]));
    expect(sources).toMatchObject({ BROOMWAGON_CONCURRENCY: 'environment', POOLS: 'file', REDIS_URL: 'default' });
  });

  it('refuses a duration longer than a timer of Node waits', () => {
    expect(listProblems({ STALL_MS: '596h' })).toEqual({});
    expect(listProblems({ STALL_MS: '597h' })).toEqual({ STALL_MS: expect.stringContaining('2147483647') });
  });

  it('reads the files of TLS again for each connection, and keeps their last content while they are gone', () => {
    const path = fileWith('first');
    const [NATS_URL, REDIS_URL] = ['tls://nats', 'rediss://redis'];
    const env = { NATS_URL, NATS_TLS_CA: path, REDIS_URL, REDIS_TLS_CERT: path };
    const config = loadConfig(ServiceConfig, { env });
    const [nats, redis] = [config.natsConfig().tls, config.redisConfig().tls];
    expect([nats.ca, redis.cert]).toEqual(['first', 'first']);
    writeFileSync(path, 'renewed');
    expect([nats.ca, redis.cert]).toEqual(['renewed', 'renewed']);
    rmSync(path);
    expect([nats.ca, redis.cert]).toEqual(['renewed', 'renewed']);
  });

  it('names all wrong values at once', () => {
    const wrong = {
      BROOMWAGON_CONCURRENCY: '0',
      STALL_MS: 'soon',
      VERBOSE: 'yes',
      HTTP_PORT: '1e3',
      POOLS: 'a b',
      NATS_URL: 'x',
    };
    expect(Object.keys(listProblems(wrong)).sort()).toEqual(Object.keys(wrong).sort());
    expect(listProblems({ HTTP_PORT: '65536' })).toEqual({ HTTP_PORT: 'httpPort must not be greater than 65535' });
  });

  it('refuses unknown variables of ours and unknown keys of the file, with a guess', () => {
    expect(listProblems({ BROOMWAGON_CONCURENCY: '3' })).toEqual({
      BROOMWAGON_CONCURENCY: 'is not known; did you mean BROOMWAGON_CONCURRENCY?',
    });
    expect(listProblems({ BROOMWAGON_CACHE: '/cache' })).toEqual({});
    expect(listProblems({ BROOMWAGON_NATS_URL: 'x' }).BROOMWAGON_NATS_URL).toContain('did you mean NATS_URL?');
    expect(listProblems({}, fileWith({ RDIS_URL: 'x' })).RDIS_URL).toContain('REDIS_URL');
    expect(listProblems({ HOME: '/', SOMETHING_ELSE: '1' })).toEqual({});
  });

  it.each([['{ not json'], [[1]], [null]])('refuses a file with %j', (content) => {
    expect(listProblems({}, fileWith(content)).CONFIG_FILE).toBeDefined();
  });

  it('refuses values of the wrong type in the file', () => {
    expect(Object.keys(listProblems({}, fileWith({ BROOMWAGON_CONCURRENCY: true, POOLS: [1] })))).toHaveLength(2);
  });

  it('reads the files of TLS, and refuses them where the address asks for no TLS', () => {
    const NATS_TLS_CA = fileWith('a CA');
    const env = { NATS_URL: 'tls://host:4222', NATS_TLS_CA, NATS_TLS_SERVER_NAME: 'nats.example' };
    const { tls } = loadConfig(ExampleConfig, { env }).natsConfig();
    expect(tls).toEqual({ ca: 'a CA', servername: 'nats.example' });
    expect(listProblems({ NATS_TLS_CA }).NATS_TLS_CA).toContain('tls://');
    expect(listProblems({ ...env, NATS_TLS_CA: '/nowhere' }).NATS_TLS_CA).toContain('readable file');
    expect(listProblems({ REDIS_TLS_SERVER_NAME: 'redis.example' }).REDIS_TLS_SERVER_NAME).toContain('rediss://');
    expect(listProblems({ NATS_URL: 'ws://host:4222' }).NATS_URL).toContain('tls://');
  });

  it('shows no secret, neither when printed nor in an error', () => {
    const env = {
      API_KEY: 'hush',
      NATS_URL: 'nats://me:hush@host:4222',
      REDIS_URL: 'redis://:hush@host',
      NATS_PASSWORD: 'hush',
    };
    const text = printedConfig(loadConfig(ExampleConfig, { env }));
    expect(text).not.toContain('hush');
    expect(text).toContain('nats://***@host:4222');
    expect(text).toContain('***');
  });
});

import type { LookupAddress } from 'node:dns';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { createEngineAdapter } from '../detect-engine';
import { EngineHttp } from '../http/engine-http';
import { EngineAccess } from './engine-access';
import { guardedLookup } from './forbidden-addresses';

const list = (...entries: string[]) => new EngineAccess(entries);
function admits(entries: string[], endpoint: string): boolean {
  try {
    list(...entries).check(endpoint);
    return true;
  } catch (error) {
    expect(error).toMatchObject({ code: 'VALIDATION_FAILED', field: 'endpoint' });
    return false;
  }
}

it('admits all other addresses when it is empty', () => {
  expect(admits([], 'http://10.1.2.3:8000')).toBe(true);
  expect(admits([], 'http://engine-1:8000')).toBe(true);
});

it.each(['[::1]', '[fd00::1]', '[2001:db8::a9fe:1]', '[::10.0.0.1]', '[64:ff9b::10.0.0.1]', '[2002:a00:1::]'])(
  'admits %s, which stands for no forbidden address',
  (host) => expect(admits([], `http://${host}:8000`)).toBe(true),
);

it.each([
  'http://169.254.169.254/latest',
  'http://169.254.0.1:8000',
  'http://2852039166/',
  'http://0xA9FEA9FE/',
  'http://0251.0376.0251.0376/',
  'http://169.16689662/',
  'http://[::ffff:169.254.169.254]/',
  'http://[::ffff:a9fe:a9fe]/',
  'http://[64:ff9b::a9fe:a9fe]/',
  'http://[64:ff9b::169.254.0.1]/',
  'http://[64:ff9b::6464:64c8]/',
  'http://[64:ff9b:1::a9fe:a9fe]/',
  'http://[64:ff9b:1:a9fe:a9:fe00::]/',
  'http://[64:ff9b:1:a9:fe:a9fe::]/',
  'http://[64:ff9b:1:ffff:a9:fea9:fe00:0]/',
  'http://[::169.254.169.254]/',
  'http://[::a9fe:1]/',
  'http://[0:0:0:0:0:0:a9fe:a9fe]/',
  'http://[::ffff:100.100.100.200]/',
  'http://[::ffff:0:192.0.0.192]/',
  'http://[2002:a9fe:a9fe::]/',
  'http://[2002:A9FE:1::1]/',
  'http://[2002:a83f:8110::1]/',
  'http://[2001:0:a9fe:a9fe::1]/',
  'http://[2001::5601:5601]/',
  'http://[fd00::5efe:169.254.169.254]/',
  'http://[2001:db8::200:5efe:a9fe:a9fe]/',
  'http://[2001:db8:64::a9fe:a9fe]/',
  'http://[fe80::1]:8000',
  'http://[febf::1]:8000',
  'http://[fd00:ec2::254]/',
  'http://100.100.100.200/',
  'http://metadata.google.internal/computeMetadata/v1/',
  'http://METADATA.google.internal.:80/',
  'http://metadata/',
])('never admits %s, whatever the list contains', async (endpoint) => {
  expect(admits([], endpoint)).toBe(false);
  expect(admits(['*', '0.0.0.0/0', '::/0'], endpoint)).toBe(false);
  // An endpoint that was registered before is not called either.
  await expect(createEngineAdapter('vllm', endpoint).health()).rejects.toMatchObject({
    code: 'ENGINE_UNREACHABLE',
    message: expect.stringContaining('never called') as unknown,
  });
});

it('refuses a name that resolves to such an address when it is called', async () => {
  const resolved = (...addresses: string[]) =>
    new Promise((resolve) => {
      const found: LookupAddress[] = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
      const lookup = guardedLookup((_, options, callback) => {
        if (options.all) callback(null, found);
        else callback(null, found[0]!.address, found[0]!.family);
      });
      const all = addresses.length > 1;
      lookup('engine', { all }, (error, address) => resolve(error?.code ?? address));
    });
  expect(await resolved('10.0.0.1')).toBe('10.0.0.1');
  expect(await resolved('169.254.169.254')).toBe('ENGINE_ADDRESS_REFUSED');
  expect(await resolved('10.0.0.1', '::ffff:169.254.1.1')).toBe('ENGINE_ADDRESS_REFUSED');
  for (const address of ['fe80::1%eth0', '::169.254.169.254', '64:ff9b::a9fe:a9fe', '2002:a9fe:a9fe::']) {
    expect(await resolved(address)).toBe('ENGINE_ADDRESS_REFUSED');
  }
  expect(await resolved('10.0.0.1', '10.0.0.2')).toMatchObject([{ address: '10.0.0.1' }, { address: '10.0.0.2' }]);
});

it('sends the key to no address outside the list, and follows no redirect', async () => {
  const asked: (string | undefined)[] = [];
  const engine = createServer((request, response) => {
    asked.push(`${request.url} ${request.headers.authorization}`);
    response.writeHead(302, { location: '/elsewhere' }).end();
  });
  await new Promise<void>((resolve) => engine.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(engine.address() as AddressInfo).port}`;
  const options = (...entries: string[]) => ({ apiKey: 'k', access: list(...entries) });
  await expect(new EngineHttp(url, options('10.0.0.0/8')).call('GET', '/a')).rejects.toMatchObject({
    code: 'ENGINE_UNREACHABLE',
  });
  expect(asked).toEqual([]);
  expect(await new EngineHttp(url, options('127.0.0.1')).call('GET', '/b')).toMatchObject({ status: 302 });
  expect(asked).toEqual(['/b Bearer k']);
  engine.closeAllConnections();
  engine.close();
});

it.each([
  [['engine-1'], 'http://engine-1:8000', true],
  [['engine-1'], 'http://engine-10:8000', false],
  [['localhost'], 'http://localhost:8000', true],
  [['localhost'], 'http://127.0.0.1:8000', true],
  [['localhost:8000'], 'http://localhost:8001', false],
  [['*.engines.svc'], 'http://a.engines.svc:8000', true],
  [['*.engines.svc'], 'http://a.engines.svc.evil.example:8000', false],
  [['*.Engines.SVC'], 'https://A.engines.svc', true],
  [['10.0.0.0/8'], 'http://10.1.2.3:8000', true],
  [['10.0.0.0/8'], 'http://11.1.2.3:8000', false],
  [['10.0.0.0/8'], 'http://10.evil.example:8000', false],
  [['10.0.0.7:8000'], 'http://10.0.0.7:8000', true],
  [['10.0.0.7:8000'], 'http://10.0.0.7:22', false],
  [['fd00::/8'], 'http://[fd00::1]:8000', true],
  [['fd00::/8'], 'http://[fe80::1]:8000', false],
  // Other notations of the same address.
  [['10.0.0.0/8'], 'http://0x0a000001:8000', true],
  [['10.0.0.0/8', 'b'], 'http://2130706433/', false],
] as const)('by %j lets %s in: %s', (entries, endpoint, expected) => {
  expect(admits([...entries], endpoint)).toBe(expected);
});

it('refuses a list that is no list of hosts at start', () => {
  expect(() => list('10.0.0.0/99')).toThrow('ENGINE_ALLOW_LIST: 10.0.0.0/99');
});

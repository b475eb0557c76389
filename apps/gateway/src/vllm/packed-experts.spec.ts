import { describe, expect, it } from 'vitest';
import { packedExperts } from './packed-experts';

/** An .npy file as numpy writes it: the data begin at a multiple of 64 bytes. */
function npy(descr: string, shape: string, data: number[], order = 'False', version = 1): string {
  const fields = `{'descr': '${descr}', 'fortran_order': ${order}, 'shape': ${shape}, }`;
  const start = version === 1 ? 10 : 12;
  const header = fields.padEnd(128 - start - 1) + '\n';
  const length = Buffer.alloc(start - 8);
  length.writeUIntLE(header.length, 0, start - 8);
  const magic = Buffer.from([0x93, ...Buffer.from('NUMPY'), version, 0]);
  return Buffer.concat([magic, length, Buffer.from(header), Buffer.from(data)]).toString('base64');
}

describe('experts of a response, packed for SkyRL', () => {
  const data = [1, 2, 3, 4, 5, 6, 7, 8];
  const base64 = Buffer.from(data).toString('base64');

  it.each([
    ['|u1', '(1, 4, 2)', 1, { shape: [1, 4, 2], dtype: 'uint8' }],
    ['<u2', '(2, 1, 2)', 2, { shape: [2, 1, 2], dtype: 'uint16' }],
    ['<i4', '(2,)', 1, { shape: [2], dtype: 'int32' }],
  ])('are the data of an .npy file with its shape: %s', (descr, shape, version, expected) => {
    expect(packedExperts(npy(descr, shape, data, 'False', version))).toEqual({ data: base64, ...expected });
  });

  it('stay as they are if an engine has packed them', () => {
    const packed = { data: base64, shape: [1, 4, 2], dtype: 'uint8' };
    expect(packedExperts(packed)).toBe(packed);
  });

  it.each([
    ['nothing', undefined],
    ['numbers without a shape', base64],
    ['another type', npy('<f8', '(1,)', data)],
    ['another order', npy('|u1', '(1, 4, 2)', data, 'True')],
    ['a file that is cut', npy('|u1', '(1, 4, 2)', data).slice(0, 12)],
    ['a list', [[1]]],
  ])('are null of %s', (_, reported) => {
    expect(packedExperts(reported)).toBeNull();
  });
});

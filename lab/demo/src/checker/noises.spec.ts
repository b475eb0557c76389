import { describe, expect, it } from 'vitest';
import { WINDOW } from './fit';
import { Noises } from './noises';

const stretch = (version: number | undefined, nats: number, tokens = 100) => ({
  version,
  differences: Array<number>(tokens).fill(nats),
});

describe('the noise of weight versions', () => {
  it('is that of the version, or of the one before where no sample starts with it', () => {
    const noises = new Noises([stretch(0, 0.06), stretch(0, 0.06), stretch(2, 0.08), stretch(undefined, 9)]);
    expect(noises.mean).toBeCloseTo(0.07, 9);
    expect(noises.find(0)).toMatchObject({ tokens: 200 });
    expect(noises.find(1)).toBe(noises.find(0));
    expect(noises.find(2)).toMatchObject({ tokens: 100 });
    expect(noises.find(7)).toBe(noises.find(2));
  });

  it('is unknown for weights that the engine does not have, and between such weights and others', () => {
    const noises = new Noises([stretch(0, 0.5), stretch(2, 0.05)]);
    expect(noises.mean).toBeCloseTo(0.05, 9);
    expect(noises.find(0)).toMatch(/^weights 0: 0\.50 nats everywhere/);
    expect(noises.find(1)).toMatch(/^weights 1: 0\.50 nats everywhere/);
    expect(noises.find(2)).not.toBeTypeOf('string');
    expect(noises.find(3)).not.toBeTypeOf('string');
  });

  it('is unknown with too few tokens', () => {
    expect(new Noises([stretch(0, 0.01, 4 * WINDOW - 1)]).find(0)).toMatch(/too few tokens/);
    expect(new Noises([]).find(3)).toMatch(/too few tokens/);
  });
});

/**
 * A stream of random numbers that is a pure function of its key: the same key gives the same numbers on every
 * machine and in any order of calls. xoshiro128** (Blackman and Vigna), seeded by hashing the key with FNV-1a and
 * spreading the hash with splitmix32. Not for secrets.
 */
export class RandomStream {
  private s0: number;
  private s1: number;
  private s2: number;
  private s3: number;
  /** The second normal deviate of a Box-Muller pair, kept for the next call. */
  private spare?: number;

  constructor(...key: (string | number)[]) {
    const seed = fnv1a(JSON.stringify(key));
    this.s0 = splitmix32(seed, 1);
    this.s1 = splitmix32(seed, 2);
    this.s2 = splitmix32(seed, 3);
    this.s3 = splitmix32(seed, 4);
  }

  /** Uniform on the open interval (0, 1): never 0, so its logarithm is finite. */
  uniform(): number {
    return (this.next() + 0.5) / 4_294_967_296;
  }

  /** Standard normal deviate (Box-Muller). */
  normal(): number {
    if (this.spare !== undefined) {
      const value = this.spare;
      this.spare = undefined;
      return value;
    }
    const radius = Math.sqrt(-2 * Math.log(this.uniform()));
    const angle = 2 * Math.PI * this.uniform();
    this.spare = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  }

  private next(): number {
    const { s0, s1 } = this;
    const result = Math.imul(rotateLeft(Math.imul(s1, 5), 7), 9) >>> 0;
    const s2 = this.s2 ^ s0;
    const s3 = this.s3 ^ s1;
    this.s1 = s1 ^ s2;
    this.s0 = s0 ^ s3;
    this.s2 = s2 ^ (s1 << 9);
    this.s3 = rotateLeft(s3, 11);
    return result;
  }
}

function rotateLeft(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}

function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return hash >>> 0;
}

/** The number of this place (from 1) in the sequence of a seed. */
function splitmix32(seed: number, place: number): number {
  const state = (seed + Math.imul(place, 0x9e3779b9)) | 0;
  let mixed = state ^ (state >>> 16);
  mixed = Math.imul(mixed, 0x21f0aaad);
  mixed ^= mixed >>> 15;
  mixed = Math.imul(mixed, 0x735a2d97);
  return mixed ^ (mixed >>> 15);
}

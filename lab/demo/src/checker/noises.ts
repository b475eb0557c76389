import { mean, Noise, WINDOW, type Differences } from './fit';

/** Least tokens before joins by which the noise of a weight version is known. */
const MIN_TOKENS = 4 * WINDOW;
/** Largest mean difference of tokens whose weights are those of the engine, nats: a lost token moves later ones by 0.5. */
const MAX_NOISE = 0.2;

/** Noise of each weight version, by the tokens before the first join of each sample. */
export class Noises {
  private readonly known: [version: number, noise: Noise][];

  constructor(stretches: readonly { version: number | undefined; differences: Differences }[]) {
    const byVersion = new Map<number, Differences[]>();
    for (const { version, differences } of stretches) {
      if (version !== undefined) byVersion.set(version, [...(byVersion.get(version) ?? []), differences]);
    }
    this.known = [...byVersion]
      .map(([version, all]): [number, Noise] => [version, new Noise(all)])
      .filter(([, noise]) => noise.tokens >= MIN_TOKENS)
      .toSorted(([one], [other]) => one - other);
  }

  /** Mean difference of the weights that the engine has. */
  get mean(): number {
    return mean(this.known.flatMap(([, noise]) => (isNoise(noise) ? [noise.mean] : [])));
  }

  /**
   * Noise of the tokens of a weight version; a reason if the engine does not have these weights. A round from the
   * long-tail queue has no samples that start in it: its weights are taken for those of the engine if those before and
   * after it are.
   */
  find(version: number): Noise | string {
    const before = this.known.findLast(([one]) => one <= version);
    const after = before?.[0] === version ? undefined : this.known.find(([one]) => one > version);
    const around = [before, after].filter((one) => one !== undefined);
    const other = around.find(([, noise]) => !isNoise(noise));
    if (other !== undefined) {
      const nats = other[1].mean.toFixed(2);
      return `weights ${version}: ${nats} nats everywhere, so the engine has others now, or a temperature`;
    }
    return around[0]?.[1] ?? `weights ${version}: too few tokens come before a join`;
  }
}

function isNoise({ mean: nats }: Noise): boolean {
  return nats <= MAX_NOISE;
}

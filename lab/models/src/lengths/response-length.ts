import type { LengthDistribution } from './length-presets';
import { RandomStream } from './random-stream';

/** Length of the shortest response, tokens. */
export const MIN_RESPONSE_TOKENS = 30;

/** Length of an endless response, as a multiple of the cap: beyond any budget. */
const ENDLESS_CAPS = 4;

/** Identity of a response: its length is a pure function of these fields. */
export interface ResponseIdentity {
  seed: number | string;
  promptKey: string;
  sampleIndex: number;
}

/** Length of one response in tokens, within [{@link MIN_RESPONSE_TOKENS}, cap]. */
export function responseLength(distribution: LengthDistribution, identity: ResponseIdentity): number {
  return Math.min(uncappedResponseLength(distribution, identity), distribution.capTokens);
}

/** Response length before the cap, tokens: an engine ends a longer response at its budget, with reason `length`. */
export function uncappedResponseLength(distribution: LengthDistribution, identity: ResponseIdentity): number {
  const { promptShare, endlessShare, capTokens } = distribution;
  const sample = new RandomStream('sample', identity.seed, identity.promptKey, identity.sampleIndex);
  const rank = Math.sqrt(promptShare) * promptRank(identity) + Math.sqrt(1 - promptShare) * sample.normal();
  if (shareAbove(rank) < endlessShare) return ENDLESS_CAPS * capTokens;
  return Math.max(MIN_RESPONSE_TOKENS, Math.round(tokensAt(distribution, rank)));
}

/** Rank of the prompt that was asked for last: callers ask for one sample of a prompt after another. */
let last: (Pick<ResponseIdentity, 'seed' | 'promptKey'> & { rank: number }) | undefined;

/** Standard normal deviate that all responses of a prompt share. */
function promptRank({ seed, promptKey }: ResponseIdentity): number {
  if (last?.promptKey !== promptKey || last.seed !== seed) {
    last = { seed, promptKey, rank: new RandomStream('prompt', seed, promptKey).normal() };
  }
  return last.rank;
}

/** Length of a response of this rank that ends, tokens. */
function tokensAt({ medianTokens, sigma, quantiles }: LengthDistribution, rank: number): number {
  if (!quantiles) return medianTokens * Math.exp(sigma * rank);
  const above = quantiles.findIndex(([deviate]) => deviate > rank);
  const index = above === -1 ? quantiles.length - 1 : Math.max(1, above);
  const [[low, least], [high, most]] = [quantiles[index - 1]!, quantiles[index]!];
  return least * (most / least) ** ((rank - low) / (high - low));
}

/** 1 - the standard normal distribution, within 1e-7 (Abramowitz and Stegun, 26.2.17). */
function shareAbove(deviate: number): number {
  if (deviate < 0) return 1 - shareAbove(-deviate);
  const t = 1 / (1 + 0.2316419 * deviate);
  const series = t * (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))));
  return (series * Math.exp((-deviate * deviate) / 2)) / Math.sqrt(2 * Math.PI);
}

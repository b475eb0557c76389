import type { LengthDistribution } from './length-presets';
import { RandomStream } from './random-stream';

/** No response is shorter, tokens. */
export const MIN_RESPONSE_TOKENS = 30;

/** Which response: a pure function of these three, whatever was asked before. */
export interface ResponseIdentity {
  seed: number | string;
  promptKey: string;
  sampleIndex: number;
}

/** Length of one response in tokens, within [{@link MIN_RESPONSE_TOKENS}, cap]. */
export function responseLength(distribution: LengthDistribution, identity: ResponseIdentity): number {
  return Math.min(uncappedResponseLength(distribution, identity), distribution.capTokens);
}

/** As {@link responseLength} before the cap: above it, an engine ends the response with `length` at its budget. */
export function uncappedResponseLength(distribution: LengthDistribution, identity: ResponseIdentity): number {
  const prompt = new RandomStream('prompt', identity.seed, identity.promptKey);
  const promptLogMean = Math.log(distribution.medianTokens) + distribution.promptSigma * prompt.normal();
  const runawayChance = promptRunawayChance(distribution, prompt);

  const sample = new RandomStream('sample', identity.seed, identity.promptKey, identity.sampleIndex);
  const tokens =
    sample.uniform() < runawayChance
      ? distribution.capTokens * (distribution.runawayFloor + (1.3 - distribution.runawayFloor) * sample.uniform())
      : Math.exp(promptLogMean + distribution.sampleSigma * sample.normal());
  return Math.max(MIN_RESPONSE_TOKENS, Math.round(tokens));
}

function promptRunawayChance(distribution: LengthDistribution, prompt: RandomStream): number {
  if (distribution.runawayShare === 0) return 0;
  const [a, b] = distribution.runawayBeta;
  return Math.min(1, prompt.beta(a, b) * (distribution.runawayShare / (a / (a + b))));
}

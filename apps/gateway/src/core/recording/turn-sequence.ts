import { createHash } from 'node:crypto';

/**
 * Identifies prompt and response of a turn: `tokens|digest|generation`. Recorded messages add `|` and their
 * description.
 */
export function buildSequence(tokenIds: readonly number[], generation: string, messages?: string): string {
  const tokens = `${tokenIds.length}|${createHash('sha256').update(toBytes(tokenIds)).digest('hex')}|${generation}`;
  return messages === undefined ? tokens : `${tokens}|${messages}`;
}

export function getMessages(sequence: string): string | undefined {
  const messages = sequence.split('|').slice(3);
  return messages.length === 0 ? undefined : messages.join('|');
}

/**
 * The turn that a prompt extends: the longest turn whose tokens are a prefix of the prompt; of equally long turns the
 * latest.
 * @param sequences sequences of the turns 1, 2, ...; empty for a turn without a record
 */
export function findParent(promptTokenIds: readonly number[], sequences: readonly string[]) {
  const known = sequences
    .map((sequence, index) => {
      const [tokens, digest] = sequence.split('|');
      return { turn: index + 1, sequence, tokens: Number(tokens), digest };
    })
    .filter(({ sequence, tokens }) => sequence !== '' && tokens <= promptTokenIds.length)
    .toSorted((a, b) => a.tokens - b.tokens);
  const hash = createHash('sha256');
  const bytes = toBytes(promptTokenIds);
  let hashed = 0;
  let digest = '';
  let parent: (typeof known)[number] | undefined;
  for (const one of known) {
    if (one.tokens > hashed || digest === '') {
      hash.update(bytes.subarray(hashed * 4, one.tokens * 4));
      hashed = one.tokens;
      digest = hash.copy().digest('hex');
    }
    if (one.digest === digest) parent = one;
  }
  return parent;
}

function toBytes(tokenIds: readonly number[]): Uint8Array {
  return new Uint8Array(Uint32Array.from(tokenIds).buffer);
}

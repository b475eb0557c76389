import { describe, expect, it } from 'vitest';
import type { IncludedStop } from './included-stop';
import { WithheldText } from './withheld-text';

const buildStop = (...stops: string[]): IncludedStop => ({ stops, tokenTexts: new Map(), hasSpecialTokens: false });
const WORDS = [' The', ' quick', ' fox'];

/** A call that was cut after all words, of which the text lacks the end. */
function cutCall(text: string, decoded: string | undefined) {
  const engine = new WithheldText(() => Promise.resolve(decoded));
  const call = engine.watch(buildStop('</answer>'))!;
  call.take({ text, tokenIds: [1, 2, 3], tokenCount: 3 });
  return { engine, call };
}

describe('the text of a call with stop texts that was cut', () => {
  it.each([
    ['whole', ' The quick fox', WORDS.join(''), ''],
    ['whole, and decoded without its first space', ' The quick fox', 'The quick fox', ''],
    ['withheld at its end', ' The qu', WORDS.join(''), 'ick fox'],
    ['withheld as a whole', '', WORDS.join(''), ' The quick fox'],
    ['not whole at a character', ' The quick', ' The quick\uFFFD', ''],
    ['withheld before half a character', ' The', ' The quick\uFFFD', ' quick'],
    ['another one than the decoded ids', ' The slow fox', WORDS.join(''), undefined],
    ['not decoded by the engine', ' The', undefined, undefined],
  ])('is %s', async (_, text, decoded, missing) => {
    expect(await cutCall(text, decoded).call.findMissing()).toBe(missing);
  });

  it('is compared until the engine has shown that it sends stop texts', async () => {
    const { engine, call } = cutCall(WORDS.join(''), WORDS.join(''));
    expect(engine.watch(buildStop('</answer>'))).toBeDefined();
    await call.findMissing();
    expect(engine.watch(buildStop('</answer>'))).toBeUndefined();

    const finished = cutCall('a</answer>', undefined);
    finished.call.finish({ stopReason: '</answer>' });
    expect(finished.engine.watch(buildStop('</answer>'))).toBeUndefined();
    const trimmed = cutCall('a', undefined);
    trimmed.call.finish({ stopReason: '</answer>' });
    expect(trimmed.engine.watch(buildStop('</answer>'))).toBeDefined();
  });

  it('is not compared without ids, and without a stop text of which a part can be withheld', async () => {
    const engine = new WithheldText(() => Promise.reject(new Error('not asked')));
    expect([engine.watch(undefined), engine.watch(buildStop('\n'))]).toEqual([undefined, undefined]);
    const call = engine.watch(buildStop('ab'))!;
    call.take({ text: 'x', tokenCount: 1 });
    expect(await call.findMissing()).toBe('');
  });
});

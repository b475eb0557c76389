import { describe, expect, it } from 'vitest';
import { ReconnectPace } from './reconnect-pace';

/** Times at which a pace dials until `endMs`, if each dial takes `dialMs`. */
function listDials(pace: ReconnectPace, beginMs: number, endMs: number, dialMs = 0): number[] {
  const dials: number[] = [];
  for (let nowMs = beginMs; nowMs < endMs;) {
    const waitMs = pace.nextWaitMs(nowMs);
    if (waitMs === 0) dials.push(nowMs);
    nowMs += waitMs === 0 ? dialMs : waitMs;
  }
  return dials;
}

describe('the pace of dials', () => {
  it('dials all addresses of a round, with pauses between rounds that double to ten seconds', () => {
    const dials = listDials(new ReconnectPace(2, 500, () => 1), 0, 40_000);
    const rounds = [0, 1_000, 3_000, 7_000, 15_000, 25_000, 35_000];
    expect(dials).toEqual(rounds.flatMap((atMs) => [atMs, atMs]));
  });

  it('draws a pause between half of the longest one and the whole', () => {
    const [, second] = listDials(new ReconnectPace(1, 4_000, () => 0), 0, 5_000);
    expect(second).toBe(4_000);
  });

  it('counts the time of a dial as part of the pause after it', () => {
    expect(listDials(new ReconnectPace(1, 500, () => 1), 0, 30_000, 9_000)).toEqual([0, 9_000, 18_000, 27_000]);
  });

  it('dials at once when the pause is ended, and pauses again after that dial', () => {
    const pace = new ReconnectPace(1, 10_000, () => 1);
    expect(listDials(pace, 0, 5_000)).toEqual([0]);
    pace.endPause();
    expect(listDials(pace, 5_000, 14_000)).toEqual([5_000]);
  });

  it('pauses before the first dial of a connection that is lost again at once', () => {
    const pace = new ReconnectPace(1, 500, () => 1);
    expect(listDials(pace, 0, 100)).toEqual([0]);
    pace.reset();
    expect(listDials(pace, 100, 600)).toEqual([500]);
  });

  it('gives each dial more time than the one before, up to twenty seconds', () => {
    const pace = new ReconnectPace(1, 0, () => 1);
    const timeouts = [0, 1, 2, 3, 4].map((nowMs) => {
      const timeoutMs = pace.dialTimeoutMs();
      pace.nextWaitMs(nowMs);
      return timeoutMs;
    });
    expect(timeouts).toEqual([2_000, 4_000, 8_000, 16_000, 20_000]);
  });
});

import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { readAgain } from './read-again';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Starts a reading with a period of one minute, whose reads end when `answer` is called. */
function begin() {
  const control = new AbortController();
  const wake = { current: () => undefined as void };
  const answers: ((value: number) => void)[] = [];
  const values: number[] = [];
  const codes: string[] = [];
  void readAgain<number>({
    read: () => new Promise((settle) => answers.push(settle)),
    everyMs: 60_000,
    signal: control.signal,
    wake,
    onValue: (value) => values.push(value),
    onError: ({ code }) => codes.push(code),
  });
  const answer = async (value: number): Promise<void> => {
    answers.at(-1)!(value);
    await vi.advanceTimersByTimeAsync(0);
  };
  return { control, wake, answers, values, codes, answer };
}

it('reads at its period, and early when it is woken', async () => {
  const { wake, answers, values, answer } = begin();
  await answer(1);
  await vi.advanceTimersByTimeAsync(59_999);
  expect(answers).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(answers).toHaveLength(2);
  await answer(2);
  wake.current();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(answers).toHaveLength(3);
  expect(values).toEqual([1, 2]);
});

it('reads again early when it is woken during a read', async () => {
  const { wake, answers, answer } = begin();
  wake.current();
  await answer(1);
  expect(answers).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(answers).toHaveLength(2);
  await answer(2);
  await vi.advanceTimersByTimeAsync(59_999);
  expect(answers).toHaveLength(2);
});

it('ends when the signal aborts', async () => {
  const { control, answers, values, answer } = begin();
  await answer(1);
  control.abort();
  await vi.advanceTimersByTimeAsync(120_000);
  expect(answers).toHaveLength(1);
  expect(values).toEqual([1]);
  expect(vi.getTimerCount()).toBe(0);
});

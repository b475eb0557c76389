import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { failpoint, setFailpoints } from './failpoint';

describe('failpoint', () => {
  const kill = vi.spyOn(process, 'kill').mockReturnValue(true);
  afterEach(() => {
    setFailpoints('');
    kill.mockClear();
  });
  afterAll(() => kill.mockRestore());

  it('does nothing unless it is named', () => {
    setFailpoints('another=kill');
    expect(failpoint('coordinator.complete.before-reply')).toBeUndefined();
    expect(kill).not.toHaveBeenCalled();
  });

  it('kills at the N-th hit only, and never returns', () => {
    setFailpoints('coordinator.complete.before-reply=kill@3,other=stop');
    expect(failpoint('coordinator.complete.before-reply')).toBeUndefined();
    expect(failpoint('coordinator.complete.before-reply')).toBeUndefined();
    expect(kill).not.toHaveBeenCalled();
    expect(failpoint('coordinator.complete.before-reply')).toBeInstanceOf(Promise);
    expect(kill).toHaveBeenCalledExactlyOnceWith(process.pid, 'SIGKILL');
  });

  it('stops, throws and delays', async () => {
    setFailpoints('a=stop,b=throw@2,c=delay:20');
    void failpoint('a');
    expect(kill).toHaveBeenCalledWith(process.pid, 'SIGSTOP');
    void failpoint('b');
    expect(() => failpoint('b')).toThrow('Failpoint b');
    const startedAtMs = performance.now();
    await failpoint('c');
    expect(performance.now() - startedAtMs).toBeGreaterThan(15);
  });

  it.each(['a', 'a=explode', 'a=delay', 'a=kill:3', 'a=kill@0'])('refuses %s', (text) => {
    expect(() => setFailpoints(text)).toThrow('FAILPOINTS');
  });
});

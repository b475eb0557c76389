import { describe, expect, it } from 'vitest';
import { BroomwagonError, isBroomwagonError } from '@broomwagon/contracts';

describe('BroomwagonError', () => {
  it('survives the wire with its code, field and reason', () => {
    const sent = new BroomwagonError('OVERLOADED', 'busy', { field: 'waitMs', retryAfterMs: 50, details: { a: 1 } });
    const got = BroomwagonError.fromWire(JSON.parse(JSON.stringify(sent.toWire())));
    expect(got.toWire()).toEqual(sent.toWire());
    expect(isBroomwagonError(got, 'OVERLOADED')).toBe(true);
  });

  it('turns a code of a newer service into INTERNAL and keeps code and details', () => {
    const got = BroomwagonError.fromWire({ code: 'FROM_THE_FUTURE' as never, message: 'm', retryable: false });
    expect(got.code).toBe('INTERNAL');
    expect(got.details).toMatchObject({ code: 'FROM_THE_FUTURE' });
  });
});

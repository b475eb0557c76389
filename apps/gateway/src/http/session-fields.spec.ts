import { describe, expect, it } from 'vitest';
import { takeSession } from './session-fields';

describe('takeSession', () => {
  it.each([
    ['program_id', { program_id: 'p' }, { session_id: 'p' }],
    ['a number as program_id, which ThunderAgent takes as a text', { program_id: 7 }, { session_id: '7' }],
    ['fields of the scheduler of ThunderAgent', { program_id: 'p', docker_ids: [], job_id: 'j', is_last_step: true }],
    ['extra_body of a client that does not merge it', { extra_body: { program_id: 'p', is_last_step: true } }],
    ['extra_body with a field of the engine', { extra_body: { program_id: 'p', x: 1 } }, { extra_body: { x: 1 } }],
    ['session_params of vllm-router', { session_params: { session_id: 'p' } }, { session_id: 'p' }],
    ['session_params with a field of the engine', { session_params: { session_id: 'p', id: 'i' } }],
    ['several fields with one session', { session_id: 'p', program_id: 'p', session_params: { session_id: 'p' } }],
    ['a field beside a session that is null', { session_id: null, program_id: 'p' }],
  ])(
    'moves the session from %s to session_id',
    (_, body: object, expected: object = { session_id: expect.anything() }) => {
      const read = takeSession({ ...body });
      expect(read).toMatchObject({ session_id: expect.any(String), ...expected });
      const kept = ['program_id', 'docker_ids', 'job_id', 'is_last_step'].filter((name) => name in read);
      expect(kept).toEqual([]);
    },
  );

  it('keeps fields of other routers that engines read', () => {
    expect(takeSession({ session_params: { session_id: 'p', id: 'i' } }).session_params).toEqual({ id: 'i' });
    const body = { job_id: 'j', extra_body: { x: 1 }, session_params: { id: 'i' } };
    expect(takeSession({ ...body })).toEqual(body);
  });

  it.each([
    ['program_id', { session_id: 'a', program_id: 'b' }],
    ['extra_body.program_id', { program_id: 'a', extra_body: { program_id: 'b' } }],
    ['session_params.session_id', { session_id: 'a', session_params: { session_id: 'b' } }],
  ])('refuses a %s that names another session', (field, body) => {
    expect(() => takeSession(body)).toThrow(expect.objectContaining({ code: 'VALIDATION_FAILED', field }));
  });
});

import { invalidField, isObject } from '@broomwagon/contracts';

/** Fields that clients of ThunderAgent send for its scheduler, and that no engine reads. */
const SCHEDULER_FIELDS = ['docker_ids', 'job_id', 'is_last_step'];

/**
 * Moves the session of a body to its field `session_id`, from the fields in which clients of other routers send it:
 * `program_id`, also in `extra_body` (ThunderAgent), and `session_params.session_id` (vllm-router).
 * @throws BroomwagonError VALIDATION_FAILED if the fields name two sessions
 */
export function takeSession(body: Record<string, unknown>): Record<string, unknown> {
  const { program_id: program, extra_body: extra, session_params: ofRouter } = body;
  if (program !== undefined) {
    delete body.program_id;
    for (const name of SCHEDULER_FIELDS) delete body[name];
    nameSession(body, 'program_id', toText(program));
  }
  if (isObject(extra) && extra.program_id !== undefined) {
    const { program_id: nested, ...others } = extra;
    for (const name of SCHEDULER_FIELDS) delete others[name];
    replace(body, 'extra_body', others);
    nameSession(body, 'extra_body.program_id', toText(nested));
  }
  if (isObject(ofRouter) && ofRouter.session_id !== undefined) {
    const { session_id: session, ...others } = ofRouter;
    replace(body, 'session_params', others);
    nameSession(body, 'session_params.session_id', session);
  }
  return body;
}

/** ThunderAgent takes the text of any value. */
function toText(program: unknown): unknown {
  return typeof program === 'number' ? String(program) : program;
}

function replace(body: Record<string, unknown>, name: string, fields: Record<string, unknown>): void {
  if (Object.keys(fields).length === 0) delete body[name];
  else body[name] = fields;
}

function nameSession(body: Record<string, unknown>, field: string, session: unknown): void {
  if (session === null) return;
  const { session_id: known = null } = body;
  if (known !== null && known !== session) throw invalidField(field, 'names another session than the rest of the body');
  body.session_id = session;
}

import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { BroomwagonError } from '@broomwagon/contracts';
import { MessagingClient } from '@broomwagon/messaging';
import type { RecordedCall } from './protocol-check';

/**
 * Loaded with `node --require` into a process of a test. Writes the calls of its clients and their replies to a file of
 * its own in the folder that CALL_RECORDS names, one JSON a line. `ProtocolCheck.compareRecord` compares them with the
 * schemas when the process has ended, so the process itself compiles no schema.
 */
const folder = process.env['CALL_RECORDS'];
/** Not shared with the process before it, which may have been killed in the middle of a line. */
const file = folder && join(folder, `${process.pid}-${Date.now()}.calls.jsonl`);
/** Later calls are not recorded: they are of the same kinds, and a test may run for hours. */
const MAX_CALLS = 2_000;

const { request } = MessagingClient.prototype;
let recorded = 0;

function record(call: RecordedCall): void {
  recorded += 1;
  if (file && recorded <= MAX_CALLS) appendFileSync(file, `${JSON.stringify(call)}\n`);
}

MessagingClient.prototype.request = async function <Reply>(
  ...[subject, body, options]: Parameters<typeof request>
): Promise<Reply> {
  try {
    const reply = await request.call(this, subject, body, options);
    record({ subject, body, reply });
    return reply as Reply;
  } catch (error) {
    if (error instanceof BroomwagonError) record({ subject, body, reply: { error: error.toWire() } });
    throw error;
  }
};

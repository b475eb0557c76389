import { BroomwagonError } from '@broomwagon/contracts';
import { MessagingClient } from '../../../messaging/src';
import { mismatches } from './mismatches';
import { ProtocolCheck } from './protocol-check';

/**
 * Stands for `@broomwagon/messaging` in tests (vitest.config.mts): all messages that its clients send and get in the
 * process of a test are compared with docs/protocol/asyncapi.json, and a body that does not fit fails the test
 * (vitest-setup.ts).
 */
export * from '../../../messaging/src';

const check = new ProtocolCheck(mismatches);
const { request, publish } = MessagingClient.prototype;

MessagingClient.prototype.request = async function <Reply>(
  ...[subject, body, options]: Parameters<typeof request>
): Promise<Reply> {
  const open = check.sent(subject, body);
  try {
    const reply = await request.call(this, subject, body, options);
    if (open) check.replied(open, reply);
    return reply as Reply;
  } catch (error) {
    if (open && error instanceof BroomwagonError) check.replied(open, { error: error.toWire() });
    throw error;
  }
};
MessagingClient.prototype.publish = function (subject, body, options): void {
  check.sent(subject, typeof body === 'string' ? (JSON.parse(body) as unknown) : body);
  publish.call(this, subject, body, options);
};

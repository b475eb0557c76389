import { readFileSync } from 'node:fs';
import { ProtocolSchemas } from './protocol-schemas';

/** A request that was compared and has no reply yet. */
export interface OpenRequest {
  subject: string;
  channel: string;
  /** Why its schema refuses it. */
  fault: string | undefined;
}

/** A call with its reply, as record-calls.ts writes it. */
export interface RecordedCall {
  subject: string;
  body: unknown;
  reply: unknown;
}

/** Errors that a service may give to a body without checking its fields. */
const REFUSALS = new Set([
  'VALIDATION_FAILED',
  'MALFORMED_JSON',
  'PAYLOAD_TOO_LARGE',
  'OVERLOADED',
  'SHUTTING_DOWN',
  'TIMEOUT',
  'UNAVAILABLE',
]);

/**
 * Compares bodies with the published schemas: replies, errors, events and commands must match them, and a request
 * that they refuse must be refused by the service too. So a test may send bad input without saying so here.
 */
export class ProtocolCheck {
  private readonly schemas = new ProtocolSchemas();
  /** Bodies that were compared. */
  compared = 0;

  /** @param mismatches gets bodies that do not fit, one line each */
  constructor(readonly mismatches: string[] = []) {}

  /** Takes a message that was sent: a request, an event or a command. @returns a request, whose reply is to come */
  sent(subject: string, body: unknown): OpenRequest | undefined {
    const channel = this.schemas.findChannel(subject);
    if (channel === undefined) return undefined;
    const kind = this.schemas.getKind(channel);
    if (kind !== 'request') {
      this.compare(subject, channel, kind, body);
      return undefined;
    }
    this.compared += 1;
    const fault = this.schemas.fault(channel, kind, body) && this.schemas.fault(channel, kind, withoutNulls(body));
    return { subject, channel, fault };
  }

  /** The reply to a request, a result or an error. */
  replied({ subject, channel, fault }: OpenRequest, body: unknown): void {
    const code = (body as { error?: { code: string } }).error?.code;
    this.compare(subject, channel, code === undefined ? 'reply' : 'error', body);
    if (fault !== undefined && !REFUSALS.has(code ?? '')) {
      this.mismatches.push(`${subject}: the service takes this request, its schema does not: ${fault}`);
    }
  }

  /** Compares the calls in a file of record-calls.ts. The last line of a killed process may be incomplete. */
  compareRecord(file: string): void {
    for (const line of readFileSync(file, 'utf8').split('\n').slice(0, -1)) {
      const { subject, body, reply } = JSON.parse(line) as RecordedCall;
      const open = this.sent(subject, body);
      if (open) this.replied(open, reply);
    }
  }

  private compare(
    subject: string,
    channel: string,
    kind: 'reply' | 'error' | 'event' | 'command',
    body: unknown,
  ): void {
    this.compared += 1;
    const fault = this.schemas.fault(channel, kind, body);
    if (fault) this.mismatches.push(`${subject}: ${kind}: ${fault}: ${JSON.stringify(body).slice(0, 1_000)}`);
  }
}

/** Removes fields that are null, which count as absent in a request, and fields that JSON does not write. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== 'object' || value === null) return value;
  const kept = Object.entries(value).filter(([, one]) => one !== null && one !== undefined);
  return Object.fromEntries(kept.map(([name, one]) => [name, withoutNulls(one)]));
}

import { readFileSync } from 'node:fs';
import addFormats from 'ajv-formats';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020';

interface Channel {
  messages: Record<string, { payload: { $ref: string } }>;
}

/** Beside the release before (scripts/test-faults.mjs), which does not know the properties that were added since. */
const allowsAbsent = process.env['OLD_BUILD'] !== undefined;
const withoutRequired = (name: string, value: unknown) => (name === 'required' ? undefined : value);

export type MessageKind = 'request' | 'reply' | 'error' | 'event' | 'command';

/** The schemas of docs/protocol/asyncapi.json, compiled at their first use. */
export class ProtocolSchemas {
  // Compiled in each test file: fast to compile goes before fast to run.
  private readonly ajv = new Ajv2020({
    strictTypes: false,
    validateSchema: false,
    inlineRefs: false,
    code: { optimize: false },
  });
  private readonly channels: Record<string, Channel>;
  private readonly compiled = new Map<string, ValidateFunction>();

  constructor() {
    const text = readFileSync('docs/protocol/asyncapi.json', 'utf8');
    const document: unknown = JSON.parse(text, allowsAbsent ? withoutRequired : undefined);
    const { channels, components } = document as { channels: Record<string, Channel>; components: object };
    this.channels = channels;
    addFormats(this.ajv);
    this.ajv.addVocabulary(['components']).addSchema({ $id: 'protocol', components });
  }

  /** The channel of a subject in the document: an operation, `event.<type>`, `worker.abort` or `worker.move`. */
  findChannel(subject: string): string | undefined {
    const [, , , ...rest] = subject.split('.');
    const parts = rest[0] === 'replica' ? rest.slice(2) : rest;
    const channel = parts.length === 3 && parts[0] === 'worker' ? `worker.${parts[2]}` : parts.join('.');
    return subject.startsWith('rollout.v1.') && Object.hasOwn(this.channels, channel) ? channel : undefined;
  }

  /** Kind of the message that the document has for a channel: a request, an event or a command. */
  getKind(channel: string): MessageKind {
    return Object.keys(this.channels[channel]!.messages)[0] as MessageKind;
  }

  /** Fault of a body by its schema; undefined when it fits. */
  fault(channel: string, kind: MessageKind, body: unknown): string | undefined {
    const from = kind === 'reply' || kind === 'error' ? `${channel}.reply` : channel;
    const { $ref } = this.channels[from]!.messages[kind]!.payload;
    let validate = this.compiled.get($ref);
    if (validate === undefined) {
      validate = this.ajv.compile({ $ref: `protocol${$ref}` });
      this.compiled.set($ref, validate);
    }
    if (validate(body)) return undefined;
    const told = validate.errors!.map(
      ({ instancePath, message, params }) => `${instancePath || 'the body'} ${message} ${JSON.stringify(params)}`,
    );
    return told.join(', ');
  }
}

// Client of the whole protocol with the types that generate-types.mjs generates.
import { headers as makeHeaders, type NatsConnection, type Subscription } from 'nats';
import type { ErrorReply, Events, Operations, WireError } from './protocol';

export class ProtocolError extends Error {
  constructor(readonly error: WireError) {
    super(`${error.code}: ${error.message}`);
  }
}

export class Client {
  constructor(
    private readonly nats: NatsConnection,
    private readonly pool: string,
  ) {}

  /** Sends one request. @throws ProtocolError with the error of the service; Error when no service replies in time */
  async call<Name extends keyof Operations>(
    operation: Name,
    body: Operations[Name]['request'],
    timeoutMs = 30_000,
  ): Promise<Operations[Name]['reply']> {
    const subject = `rollout.v1.${this.pool}.${operation}`;
    const headers = makeHeaders();
    headers.set('Broomwagon-Timeout-Ms', String(timeoutMs));
    const options = { maxWait: timeoutMs, headers };
    for await (const message of await this.nats.requestMany(subject, JSON.stringify(body), options)) {
      // A JetStream stream over these subjects acknowledges each request; only a service names its replica.
      if (!message.headers?.has('Broomwagon-Replica')) continue;
      const reply = message.json<Operations[Name]['reply'] | ErrorReply>();
      if ('error' in reply) throw new ProtocolError(reply.error);
      return reply;
    }
    throw new Error(`No service replied to ${subject} within ${timeoutMs} ms`);
  }

  /** Calls the handler with each event of a type. */
  listen<Type extends keyof Events>(type: Type, handler: (event: Events[Type]) => void): Subscription {
    const callback = (error: Error | null, message: { json<T>(): T }) => {
      if (error === null) handler(message.json<Events[Type]>());
    };
    return this.nats.subscribe(`rollout.v1.${this.pool}.event.${type}`, { callback });
  }
}

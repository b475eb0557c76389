import { Controller, Module, type Type } from '@nestjs/common';
import { Ctx, EventPattern, MessagePattern, Payload, RpcException } from '@nestjs/microservices';
import { Test } from '@nestjs/testing';
import { IsInt, IsOptional, IsString, Max } from 'class-validator';
import { BroomwagonError } from '@broomwagon/contracts';
import { MessagingClient } from '../client/messaging.client';
import { connectNats, type MessagingConnection } from '../connection';
import { ContractPipe } from '../validation/contract.pipe';
import { MessageContext, PARKED } from './message-context';
import { NatsTransport, type NatsTransportOptions } from './nats.transport';
import { ReplySubjects } from './reply-subjects';
import { attachTransport } from './rethrow.filter';

export class EchoRequest {
  @IsInt() @Max(100) value!: number;
  @IsOptional() @IsInt() waitMs?: number;
  @IsOptional() @IsString() text?: string;
}

/** Builds a controller for `rollout.v1.<pool>.<prefix>.…`. Each spec file has a prefix. */
export function echoController(prefix: string): Type & { seen: MessageContext[]; events: number[]; gate: Gate } {
  @Controller()
  class EchoController {
    static readonly seen: MessageContext[] = [];
    static readonly events: number[] = [];
    static readonly gate = new Gate();

    @MessagePattern(`rollout.v1.*.${prefix}.echo`)
    async echo(
      @Payload(new ContractPipe(EchoRequest)) body: EchoRequest,
      @Ctx() context: MessageContext,
    ): Promise<object> {
      EchoController.seen.push(context);
      await (body.waitMs === undefined ? undefined : new Promise((resolve) => setTimeout(resolve, body.waitMs)));
      return { ...body, pool: context.pool };
    }

    @MessagePattern(`rollout.v1.*.${prefix}.hold`)
    async hold(): Promise<object> {
      await EchoController.gate.pass();
      return { held: true };
    }

    @MessagePattern(`rollout.v1.*.${prefix}.park`)
    park(@Ctx() context: MessageContext): typeof PARKED {
      EchoController.seen.push(context);
      return PARKED;
    }

    @MessagePattern(`rollout.v1.*.${prefix}.fail`)
    fail(@Payload() body: { how: string }): unknown {
      switch (body.how) {
        case 'ours':
          throw new BroomwagonError('FENCED', 'an old epoch', { details: { epoch: 'e2' } });
        case 'retryable':
          throw new BroomwagonError('QUEUE_FULL', 'full', { retryAfterMs: 7 });
        case 'rpc-text':
          throw new RpcException('secret text');
        case 'internal':
          throw new BroomwagonError('INTERNAL', 'secret password');
        case 'circular': {
          const circular: Record<string, unknown> = {};
          circular.self = circular;
          return circular;
        }
        case 'large':
          return { text: 'x'.repeat(2_000_000) };
        default:
          throw new TypeError('secret password');
      }
    }

    @MessagePattern(`rollout.v1.*.${prefix}.broadcast`, { broadcast: true })
    broadcast(): object {
      return { from: process.pid };
    }

    @EventPattern(`rollout.v1.*.${prefix}.event`)
    async event(@Payload(new ContractPipe(EchoRequest)) body: EchoRequest): Promise<void> {
      await EchoController.gate.pass();
      EchoController.events.push(body.value);
    }
  }
  return EchoController;
}

/** Holds handlers until it is opened. */
export class Gate {
  waiting = 0;
  private open = Promise.resolve();
  private release: () => void = () => undefined;

  close(): void {
    this.open = new Promise((resolve) => (this.release = resolve));
  }

  lift(): void {
    this.release();
    this.open = Promise.resolve();
  }

  async pass(): Promise<void> {
    this.waiting++;
    await this.open;
    this.waiting--;
  }
}

/** One replica of an app with a controller, and a client with a separate connection. */
export interface EchoApp {
  transport: NatsTransport;
  connection: MessagingConnection;
  client: MessagingClient;
  close(): Promise<void>;
}

export async function startEchoApp(
  url: string,
  controller: Type,
  options: Partial<NatsTransportOptions> = {},
): Promise<EchoApp> {
  @Module({ controllers: [controller] })
  class EchoModule {}
  const connection = await connectNats({ url, reconnectWaitMs: 50 });
  const transport = new NatsTransport(connection, { queueGroup: 'echo', ...options });
  const testing = await Test.createTestingModule({ imports: [EchoModule] }).compile();
  const app = testing.createNestApplication({ logger: false });
  attachTransport(app, transport);
  await app.init();
  await app.startAllMicroservices();
  // The client does not repeat requests on a busy machine, because tests count messages.
  const client = new MessagingClient(await connectNats({ url, reconnectWaitMs: 50 }), new ReplySubjects(), 60_000);
  return {
    transport,
    connection,
    client,
    close: async () => {
      await app.close();
      await client.connection.close();
    },
  };
}

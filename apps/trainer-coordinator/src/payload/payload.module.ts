import { Inject, Module, type DynamicModule, type FactoryProvider, type OnApplicationShutdown } from '@nestjs/common';
import { openPayloadStore, PayloadStore, type PayloadStoreOptions } from '@broomwagon/state';
import { PayloadController } from './payload.controller';

/** The payload store of the app (inject `PayloadStore` anywhere) and its operations on the wire. */
@Module({})
export class PayloadModule implements OnApplicationShutdown {
  constructor(@Inject(PayloadStore) private readonly payloads: PayloadStore) {}

  static register(options: PayloadStoreOptions): DynamicModule {
    return PayloadModule.registerAsync({ useFactory: () => options });
  }

  /** As {@link register}, with options made from injected providers (the configuration). */
  static registerAsync(options: Pick<FactoryProvider<PayloadStoreOptions>, 'inject' | 'useFactory'>): DynamicModule {
    return {
      module: PayloadModule,
      global: true,
      controllers: [PayloadController],
      providers: [
        {
          provide: PayloadStore,
          inject: options.inject ?? [],
          useFactory: async (...injected: unknown[]) => openPayloadStore(await options.useFactory(...injected)),
        },
      ],
      exports: [PayloadStore],
    };
  }

  /** After the transport has drained: nothing is in hand any more. */
  async onApplicationShutdown(): Promise<void> {
    await this.payloads.close();
  }
}

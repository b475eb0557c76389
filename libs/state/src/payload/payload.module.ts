import { ConfigurableModuleBuilder, Global, Module, type OnApplicationShutdown } from '@nestjs/common';
import { openPayloadStore, type PayloadStoreOptions } from './open-payload-store';
import { PayloadStore } from './payload-store';

const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } = new ConfigurableModuleBuilder<PayloadStoreOptions>()
  .setClassMethodName('forRoot')
  .build();

/** The payload store of an app: inject `PayloadStore` anywhere. */
@Global()
@Module({
  providers: [{ provide: PayloadStore, inject: [MODULE_OPTIONS_TOKEN], useFactory: openPayloadStore }],
  exports: [PayloadStore],
})
export class PayloadModule extends ConfigurableModuleClass implements OnApplicationShutdown {
  constructor(private readonly payloads: PayloadStore) {
    super();
  }

  /** After the transport has drained: nothing is in hand any more. */
  async onApplicationShutdown(): Promise<void> {
    await this.payloads.close();
  }
}

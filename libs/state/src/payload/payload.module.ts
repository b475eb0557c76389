import {
  ConfigurableModuleBuilder,
  Global,
  Inject,
  Module,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common';
import { isBroomwagonError } from '@broomwagon/contracts';
import { openPayloadStore, type PayloadStoreOptions } from './open-payload-store';
import { PayloadStore } from './payload-store';

/** What an app configures of its payload store, and where the store reports to. */
export interface PayloadModuleOptions extends PayloadStoreOptions {
  /** Collects what the app cannot work without, and its warnings. */
  readiness: {
    addReadiness(name: string, check: () => Promise<unknown>): void;
    /** Ends the process, since only a restart helps. */
    requestRestart(reason: Error): void;
  };
  /** False for an app most of whose calls need no payload: readiness then has a warning. Default true. */
  isNeeded?: boolean;
}

const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } = new ConfigurableModuleBuilder<PayloadModuleOptions>()
  .setClassMethodName('forRoot')
  .build();

/** The payload store of an app: inject `PayloadStore` anywhere. */
@Global()
@Module({
  providers: [
    {
      provide: PayloadStore,
      inject: [MODULE_OPTIONS_TOKEN],
      useFactory: (options: PayloadModuleOptions) =>
        openPayloadStore({ ...options, requestRestart: options.readiness.requestRestart }),
    },
  ],
  exports: [PayloadStore],
})
export class PayloadModule extends ConfigurableModuleClass implements OnModuleInit, OnApplicationShutdown {
  constructor(
    @Inject(MODULE_OPTIONS_TOKEN) private readonly options: PayloadModuleOptions,
    private readonly payloads: PayloadStore,
  ) {
    super();
  }

  onModuleInit(): void {
    const { readiness, isNeeded = true } = this.options;
    readiness.addReadiness('payloads', () =>
      this.payloads.checkWritable().catch((error: Error) => {
        // A full store lets rounds end, which frees it.
        if (isNeeded && !isBroomwagonError(error, 'PAYLOAD_STORE_FULL')) throw error;
        return error.message;
      }),
    );
  }

  /** After the transport has drained: nothing is in hand any more. */
  async onApplicationShutdown(): Promise<void> {
    await this.payloads.close();
  }
}

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

/** Options of the payload store of an app, and the readiness to which it reports. */
export interface PayloadModuleOptions extends PayloadStoreOptions {
  /** Collects checks of everything the app needs, and their warnings. */
  readiness: {
    addReadiness(name: string, check: () => Promise<unknown>): void;
    /** Ends the process, because only a restart helps. */
    requestRestart(reason: Error): void;
  };
  /** False for an app that needs no payload in most calls: a failing store is then only a warning. Default true. */
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
        // A full store is only a warning, because rounds can still end, and their end frees payloads.
        if (isNeeded && !isBroomwagonError(error, 'PAYLOAD_STORE_FULL')) throw error;
        return error.message;
      }),
    );
  }

  /** Closes the store after the transport has drained, when no request is in progress any more. */
  async onApplicationShutdown(): Promise<void> {
    await this.payloads.close();
  }
}

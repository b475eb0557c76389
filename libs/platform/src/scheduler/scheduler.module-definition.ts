import { ConfigurableModuleBuilder } from '@nestjs/common';
import type { PoolName } from '@broomwagon/contracts';

export interface SchedulerOptions {
  /** Lists the pools that the app looks after now. */
  pools: () => Promise<readonly PoolName[]>;
}

export const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } = new ConfigurableModuleBuilder<SchedulerOptions>()
  .setClassMethodName('forRoot')
  .build();

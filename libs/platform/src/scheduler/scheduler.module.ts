import { Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { Scheduler } from './scheduler';
import { ConfigurableModuleClass } from './scheduler.module-definition';

/** The periodic work of an app: methods of its providers with `@InEachPool` or `@Periodically`. */
@Module({ imports: [DiscoveryModule], providers: [Scheduler], exports: [Scheduler] })
export class SchedulerModule extends ConfigurableModuleClass {}

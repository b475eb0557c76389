import { Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { MethodFinder } from './method-finder';
import { ConfigurableModuleClass, Scheduler } from './scheduler';

/** The periodic work of an app: methods of its providers with `@InEachPool` or `@Periodically`. */
@Module({ imports: [DiscoveryModule], providers: [MethodFinder, Scheduler], exports: [MethodFinder, Scheduler] })
export class SchedulerModule extends ConfigurableModuleClass {}

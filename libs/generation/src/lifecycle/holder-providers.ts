import type { Provider, Type } from '@nestjs/common';
import { TypedClient } from '@broomwagon/messaging';
import { EngineAdapters } from '../engine/engine-adapters';
import { EngineCalls } from '../engine/engine-calls';
import { PoolPause } from '../engine/pool-pause';
import { ServerSigns } from '../engine/server-signs';
import { HeldLeases } from '../leases/held-leases';
import { LeaseAcquirer } from '../leases/lease-acquirer';
import { LeaseCalls } from '../leases/lease-calls';
import { LeaseReleaser } from '../leases/lease-releaser';
import { ControlPlane } from '../holder/control-plane';
import { HeldAttempts } from '../leases/held-attempts';
import { Heartbeat } from './heartbeat';
import { HolderConfig } from '../holder/holder.config';
import { HolderLifecycle } from './holder-lifecycle';
import { HolderMetrics } from '../holder/holder-metrics';
import { Reconciler } from './reconciler';
import { WorkerSession } from '../leases/worker-session';

/**
 * The providers of a module that holds leases.
 * @param attempts attempts of the module for claimed requests
 * @param calls calls by which the module acquires and releases
 */
export function holderProviders(
  config: Type<HolderConfig>,
  attempts: Type<HeldAttempts>,
  calls: Type<LeaseCalls> = LeaseCalls,
): Provider[] {
  return [
    { provide: HolderConfig, useExisting: config },
    { provide: HeldAttempts, useExisting: attempts },
    { provide: LeaseCalls, useClass: calls },
    {
      provide: ControlPlane,
      inject: [TypedClient, HolderConfig],
      useFactory: (client: TypedClient, { pool }: HolderConfig) => new ControlPlane(client, pool),
    },
    EngineAdapters,
    EngineCalls,
    Heartbeat,
    HeldLeases,
    HolderLifecycle,
    HolderMetrics,
    LeaseAcquirer,
    LeaseReleaser,
    PoolPause,
    Reconciler,
    ServerSigns,
    WorkerSession,
  ];
}

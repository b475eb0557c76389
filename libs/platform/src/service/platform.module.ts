import { Module, type DynamicModule, type Type } from '@nestjs/common';
import { TerminusModule } from '@nestjs/terminus';
import { MessagingClient, MessagingConnection, NatsTransport, TypedClient } from '@broomwagon/messaging';
import { LoggerModule } from 'nestjs-pino';
import type { Logger } from 'pino';
import { Alarms } from '../alarms';
import { ServiceConfig } from '../configuration/service.config';
import { HealthRegistry } from '../health/health-registry';
import { HealthController } from '../health/health.controller';
import { ReadinessController } from '../health/readiness.controller';
import { Metrics } from '../metrics';
import { LogLevelController, LogSource } from '../logging/log-level.controller';
import { loggerParams } from '../logging/logging';

/** Parts that exist before the application. */
export interface PlatformParts {
  config: ServiceConfig;
  connection: MessagingConnection;
  client: MessagingClient;
  transport: NatsTransport;
  metrics: Metrics;
  logger: Logger;
  app: string;
}

/** Provides common parts to every module of an app. The configuration is provided by its class and as ServiceConfig. */
@Module({})
export class PlatformModule {
  static forService(parts: PlatformParts): DynamicModule {
    const { config, connection, client, transport, metrics } = parts;
    const configTypes = new Set<Type>([ServiceConfig, config.constructor as Type]);
    const providers = [
      ...[...configTypes].map((type) => ({ provide: type, useValue: config })),
      { provide: MessagingConnection, useValue: connection },
      { provide: MessagingClient, useValue: client },
      { provide: TypedClient, useValue: new TypedClient(client) },
      { provide: NatsTransport, useValue: transport },
      { provide: Metrics, useValue: metrics },
      { provide: Alarms, useValue: new Alarms(metrics) },
      { provide: LogSource, useValue: new LogSource(parts.app, connection.replicaId, parts.logger) },
      { provide: HealthRegistry, useFactory: () => new HealthRegistry(connection, transport) },
    ];
    return {
      module: PlatformModule,
      global: true,
      imports: [LoggerModule.forRoot(loggerParams(parts.logger)), TerminusModule.forRoot({ logger: false })],
      controllers: [HealthController, LogLevelController, ReadinessController],
      providers,
      exports: providers.map((provider) => provider.provide),
    };
  }
}

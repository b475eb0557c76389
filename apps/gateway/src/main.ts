// This import is the first: SIGTERM during the other imports must not be ignored.
import '../../../libs/platform/src/service/signals-first';
import 'reflect-metadata';
import { runService } from '@broomwagon/platform';
import { GatewayConfig } from './gateway.config';
import { gatewayHttp } from './http/http-server';
import { GatewayModule } from './gateway.module';

void runService(GatewayModule, {
  app: 'gateway',
  configType: GatewayConfig,
  transport: ({ workerId }) => ({ placeholders: { workerId } }),
  http: gatewayHttp,
});

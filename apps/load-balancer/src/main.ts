// This import is the first: SIGTERM during the other imports must not be ignored.
import '../../../libs/platform/src/service/signals-first';
import 'reflect-metadata';
import { runService } from '@broomwagon/platform';
import { LoadBalancerConfig } from './load-balancer.config';
import { LoadBalancerModule } from './load-balancer.module';

void runService(LoadBalancerModule, { app: 'load-balancer', configType: LoadBalancerConfig });

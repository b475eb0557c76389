// This import is the first: SIGTERM during the other imports must not be ignored.
import '../../../libs/platform/src/service/signals-first';
import 'reflect-metadata';
import { runService } from '@broomwagon/platform';
import { CoordinatorConfig } from './coordinator.config';
import { CoordinatorModule } from './coordinator.module';

void runService(CoordinatorModule, { app: 'trainer-coordinator', configType: CoordinatorConfig });

// This import is the first: SIGTERM during the other imports must not be ignored.
import '../../../libs/platform/src/service/signals-first';
import 'reflect-metadata';
import { runService } from '@broomwagon/platform';
import { WorkerConfig } from './worker.config';
import { WorkerModule } from './worker.module';

void runService(WorkerModule, {
  app: 'worker',
  configType: WorkerConfig,
  transport: (config) => ({ placeholders: { workerId: config.workerId } }),
});

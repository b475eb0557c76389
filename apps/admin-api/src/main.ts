// This import is the first: SIGTERM during the other imports must not be ignored.
import '../../../libs/platform/src/service/signals-first';
import 'reflect-metadata';
import { runService } from '@broomwagon/platform';
import { AdminApiConfig } from './admin-api.config';
import { AdminApiModule } from './admin-api.module';
import { httpServer } from './http/http-server';

void runService(AdminApiModule, { app: 'admin-api', configType: AdminApiConfig, http: httpServer });

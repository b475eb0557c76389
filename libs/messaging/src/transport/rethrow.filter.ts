import { Catch, type ExceptionFilter, type INestApplication } from '@nestjs/common';
import { NestMicroservice } from '@nestjs/microservices';
import { throwError, type Observable } from 'rxjs';
import type { NatsTransport } from './nats.transport';

/** Hands every exception to the transport as it is: it is mapped there, once. Nest's own filter would mask ours. */
@Catch()
export class RethrowFilter implements ExceptionFilter {
  catch(exception: unknown): Observable<never> {
    return throwError(() => exception);
  }
}

/**
 * Connects the transport to a Nest application, with the filter it needs. HTTP filters of the application stay as they
 * are.
 */
export function attachTransport(app: INestApplication, transport: NatsTransport): NestMicroservice {
  const microservice = app.connectMicroservice(
    { strategy: transport },
    { deferInitialization: true },
  ) as NestMicroservice;
  microservice.useGlobalFilters(new RethrowFilter());
  // Nest does the following for a connected microservice, too; here only after the filter is known. The application
  // itself runs the init hooks.
  microservice.registerListeners();
  microservice.setIsInitialized(true);
  microservice.setIsInitHookCalled(true);
  return microservice;
}

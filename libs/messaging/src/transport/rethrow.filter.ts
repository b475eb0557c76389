import { Catch, type ExceptionFilter, type INestApplication } from '@nestjs/common';
import { NestMicroservice } from '@nestjs/microservices';
import { throwError, type Observable } from 'rxjs';
import type { NatsTransport } from './nats.transport';

/** Passes every exception to the transport, which maps it once. The default filter of Nest would mask our errors. */
@Catch()
export class RethrowFilter implements ExceptionFilter {
  catch(exception: unknown): Observable<never> {
    return throwError(() => exception);
  }
}

/**
 * Connects the transport to a Nest application, with the filter that the transport needs. HTTP filters of the
 * application do not change.
 */
export function attachTransport(app: INestApplication, transport: NatsTransport): NestMicroservice {
  const microservice = app.connectMicroservice(
    { strategy: transport },
    { deferInitialization: true },
  ) as NestMicroservice;
  microservice.useGlobalFilters(new RethrowFilter());
  // Nest would make these calls at the connection of the microservice, which is before the filter is set. The
  // application itself runs the init hooks.
  microservice.registerListeners();
  microservice.setIsInitialized(true);
  microservice.setIsInitHookCalled(true);
  return microservice;
}

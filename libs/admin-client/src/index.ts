export { AdminApiError } from './admin-api-error';
export {
  type AdminClient,
  type AdminClientOptions,
  createAdminClient,
  dataOf,
  pagesOf,
  type Schemas,
} from './admin-client';
export { eventsOf, type EventsOptions, type StreamedEvent, textOf } from './events';

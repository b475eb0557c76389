export { AdminApiError } from './admin-api-error';
export {
  type AdminClient,
  type AdminClientOptions,
  createAdminClient,
  readData,
  iteratePages,
  type Schemas,
} from './admin-client';
export { iterateEvents, type EventsOptions, type StreamedEvent, decodeText } from './events';

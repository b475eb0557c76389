// The `main` of each service imports this file first. Process 1 of a container ignores SIGTERM until it has a handler,
// so without this file a service would start in a pod that is being deleted.
import { handleEndSignals } from './end-signals';

handleEndSignals();

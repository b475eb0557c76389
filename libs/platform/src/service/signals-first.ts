// The `main` of each service imports this file first: process 1 of a container that has no handler ignores SIGTERM, and
// would begin to work in a pod that is being deleted.
import { handleEndSignals } from './end-signals';

handleEndSignals();

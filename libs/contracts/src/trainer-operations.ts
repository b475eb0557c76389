import type { Role } from './admin.dto';
import { type OperationName, OPERATIONS } from './operations';
import { ROUTES } from './routes';

/** Names of the operations that a trainer calls. */
const OF_TRAINERS = /^(round|weights|longtail|payload|job|group)\.|^request\.(abort|segments)$/;
const names = (Object.keys(OPERATIONS) as OperationName[]).filter((name) => OF_TRAINERS.test(name));

/**
 * Operations that the gateway serves over HTTP, each with the lowest role that may call it: `admin` if a route of
 * admin-api for the operation requires `admin`, otherwise `trainer`.
 */
export const TRAINER_OPERATIONS: ReadonlyMap<OperationName, Role> = new Map(
  names.map((name) => {
    const isForAdmins = ROUTES.some(({ operation, role }) => operation === name && role === 'admin');
    return [name, isForAdmins ? 'admin' : 'trainer'];
  }),
);

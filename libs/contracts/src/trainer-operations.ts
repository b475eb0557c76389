import type { Role } from './admin.dto';
import { type OperationName, OPERATIONS } from './operations';
import { ROUTES } from './routes';

/** A trainer also aborts requests, and reads failed groups, and the segments that do not fit a page of results. */
const OF_TRAINERS = /^(round|weights|longtail|payload|job|group)\.|^request\.(abort|segments)$/;
const names = (Object.keys(OPERATIONS) as OperationName[]).filter((name) => OF_TRAINERS.test(name));

/**
 * The operations that the gateway also serves over HTTP, with the lowest role that may call each: `admin` if a route of
 * admin-api for it has that role, otherwise `trainer`.
 */
export const TRAINER_OPERATIONS: ReadonlyMap<OperationName, Role> = new Map(
  names.map((name) => {
    const isForAdmins = ROUTES.some(({ operation, role }) => operation === name && role === 'admin');
    return [name, isForAdmins ? 'admin' : 'trainer'];
  }),
);

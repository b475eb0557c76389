/** Scripts without a row in `bench scripts`, since no input makes them slower; with the reason. */
export const SMALL_SCRIPTS: Record<string, string> = {
  'audit/end-recount': 'the mark of one job',
  'audit/mend-counts': 'the ten counts of one job',
  'partials/claim': 'one claim',
  'partials/release': 'one claim, and one text that DEL frees',
  'payload/forget-job': 'one entry of the registry',
  'payload/remember-job': 'one entry of the registry',
  'pools/raise-schema': 'one field of one pool',
  'sessions/close': 'at most 64 sessions, each with its server',
  'sessions/outlook': 'three kinds of counts in at most 30 bins each',
  'trajectories/sampling': 'two fields of one session',
  'weights/stale-cache': 'one server',
};

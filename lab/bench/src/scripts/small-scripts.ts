/** Scripts without a row in `bench scripts`, since nothing makes them larger; and why. */
export const SMALL_SCRIPTS: Record<string, string> = {
  'audit/end-recount': 'the mark of one job',
  'audit/mend-counter': 'one counter of one server',
  'audit/mend-counts': 'the ten counts of one job',
  'audit/mend-digest': 'one field of one worker',
  'audit/mend-session': 'one session',
  'payload/forget-job': 'one entry of the registry',
  'payload/remember-job': 'one entry of the registry',
  'weights/stale-cache': 'one server',
};

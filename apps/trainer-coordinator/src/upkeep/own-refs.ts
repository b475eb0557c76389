import type { GroupId, JobId } from '@broomwagon/contracts';
import { parsePayloadRef, PAYLOAD_DRIVERS } from '@broomwagon/state';

/**
 * The payloads that go with a deleted group. A prompt (the first reference) that was put once for several groups has
 * another owner; it stays until that one is gone.
 */
export function ownRefs(group: { job: JobId; groupId: GroupId; refs: readonly string[] }): readonly string[] {
  const [promptRef, ...tokenRefs] = group.refs;
  const driver = PAYLOAD_DRIVERS.find((name) => promptRef!.startsWith(`${name}~`));
  if (driver === undefined) return tokenRefs;
  const prompt = parsePayloadRef(driver, promptRef!);
  return prompt.job === group.job && prompt.owner === group.groupId ? group.refs : tokenRefs;
}

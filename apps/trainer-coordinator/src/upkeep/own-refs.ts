import { parsePayloadRef, PAYLOAD_DRIVERS, type FreedGroup } from '@broomwagon/state';

/**
 * The payloads that go with a deleted group. A prompt that was put once for several groups has another owner; it stays
 * until that one is gone.
 */
export function ownRefs({ job, groupId, promptRef, refs }: FreedGroup): readonly string[] {
  const driver = PAYLOAD_DRIVERS.find((name) => promptRef?.startsWith(`${name}~`));
  if (driver === undefined) return refs;
  const prompt = parsePayloadRef(driver, promptRef!);
  return prompt.job === job && prompt.owner === groupId ? [promptRef!, ...refs] : refs;
}

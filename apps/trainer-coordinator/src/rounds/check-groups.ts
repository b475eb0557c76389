import {
  BroomwagonError,
  invalidField,
  findPromptFault,
  LIMITS,
  type GroupSubmission,
  type Prompt,
} from '@broomwagon/contracts';

/**
 * Checks rules that the schema of the message cannot express: a page names each group once, a group has one kind of
 * prompt, and inline prompts and sampling parameters are within their limits.
 * @throws BroomwagonError VALIDATION_FAILED or PAYLOAD_TOO_LARGE, naming the field
 */
export function checkGroups(groups: readonly GroupSubmission[]): void {
  const seen = new Set<string>();
  for (const [position, group] of groups.entries()) {
    const field = (name: string): string => `groups.${position}.${name}`;
    if (seen.has(group.groupId)) throw invalidField(field('groupId'), `${group.groupId} comes twice in the page`);
    seen.add(group.groupId);
    if ((group.prompt === undefined) === (group.promptRef === undefined)) {
      throw invalidField(field('prompt'), 'exactly one of prompt and promptRef is needed');
    }
    if ((group.minSamples ?? 1) > group.samples) {
      throw invalidField(field('minSamples'), `${group.minSamples} of ${group.samples} samples can never be finished`);
    }
    if (group.prompt !== undefined) checkPrompt(group.prompt, field('prompt'));
    const bytes = Buffer.byteLength(JSON.stringify(group.sampling ?? {}));
    if (bytes > LIMITS.samplingBytes) {
      throw invalidField(field('sampling'), `${bytes} bytes; at most ${LIMITS.samplingBytes}`);
    }
  }
}

function checkPrompt(prompt: Prompt, field: string): void {
  const fault = findPromptFault(prompt);
  if (fault) throw invalidField(fault.field === '' ? field : `${field}.${fault.field}`, fault.reason);
  const bytes = Buffer.byteLength(JSON.stringify(prompt));
  if (bytes > LIMITS.inlinePromptBytes) {
    throw new BroomwagonError(
      'PAYLOAD_TOO_LARGE',
      `${field} has ${bytes} bytes; over ${LIMITS.inlinePromptBytes} store it with payload.put`,
      { field },
    );
  }
}

import { readData } from '@broomwagon/admin-client';
import { Select, TextInput } from '@mantine/core';
import { useState } from 'react';
import { ActionButton } from '../../actions/action-button';
import { StoppedWork } from '../../actions/stopped-work';
import { compact, plainId } from '../../components/format';
import { useSession } from '../../session/session';
import { useScope } from '../../shell/scope';

interface Selector {
  job?: string;
  roundId?: string;
  groupId?: string;
  serverId?: string;
  requestIds?: string[];
}

/** Aborts the requests of a selector, page after page. */
function useAbort() {
  const { client } = useSession();
  const { pool } = useScope();
  return async (key: string, selector: Selector, reason: string): Promise<string> => {
    let aborted = 0;
    let cursor: number | undefined;
    do {
      const body = { ...selector, abortId: key, cursor, ...(reason === '' ? {} : { reason }) };
      const page = await readData(
        client.POST('/api/v1/pools/{pool}/requests/abort', { params: { path: { pool } }, body }),
      );
      aborted += page.results.filter(({ outcome }) => outcome === 'aborted' || outcome === 'aborting').length;
      ({ cursor } = page);
    } while (cursor !== undefined);
    return `${aborted} requests are aborted.`;
  };
}

const TARGETS = [
  { value: 'roundId', label: 'all requests of this round' },
  { value: 'groupId', label: 'one group of this job' },
  { value: 'serverId', label: 'the requests on one server' },
];

export function AbortAction({ job, roundId, onDone }: { job: string; roundId: string; onDone(): void }) {
  const abort = useAbort();
  const [target, setTarget] = useState('groupId');
  const [id, setId] = useState('');
  const [reason, setReason] = useState('');
  const selectors: Record<string, Selector> = {
    roundId: { job, roundId },
    groupId: { job, groupId: id },
    serverId: { serverId: id },
  };
  return (
    <ActionButton
      label="Abort requests"
      title="Abort requests?"
      about="Their engines stop at once. Groups that lose a sample are dropped, unless the round allows them to continue with fewer."
      isDangerous
      run={(key) => abort(key, selectors[target]!, reason)}
      onDone={onDone}
    >
      <Select label="What" data={TARGETS} value={target} allowDeselect={false} onChange={(next) => setTarget(next!)} />
      {target !== 'roundId' && (
        <TextInput
          label={target === 'groupId' ? 'Group' : 'Server'}
          value={id}
          onChange={(event) => setId(event.currentTarget.value)}
          required
        />
      )}
      {target === 'roundId' && <StoppedWork of={{ job, roundId }} verb="stops" />}
      {target === 'groupId' && id !== '' && <StoppedWork of={{ job, groupId: id }} verb="stops" />}
      {target === 'serverId' && id !== '' && <StoppedWork of={{ serverId: id }} verb="stops" />}
      <TextInput
        label="Reason"
        value={reason}
        maxLength={256}
        onChange={(event) => setReason(event.currentTarget.value)}
      />
    </ActionButton>
  );
}

interface AbortRequestActionProps {
  requestId: string;
  tokens: number;
  onDone(): void;
}

export function AbortRequestAction({ requestId, tokens, onDone }: AbortRequestActionProps) {
  const abort = useAbort();
  return (
    <ActionButton
      label="Abort"
      title={`Abort ${plainId(requestId)}?`}
      about={`This stops 1 request, ${compact(tokens)} tokens. Its engine stops at once. Its group is dropped, unless the round allows it to continue with fewer samples.`}
      isDangerous
      run={(key) => abort(key, { requestIds: [requestId] }, '')}
      onDone={onDone}
    />
  );
}

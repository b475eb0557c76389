import { readData } from '@broomwagon/admin-client';
import { ActionButton } from '../../actions/action-button';
import { useSession } from '../../session/session';
import { useScope } from '../../shell/scope';

/** @param onDone called after the change, beside the read of the status */
export function PauseAction({ onDone }: { onDone?(): void }) {
  const { client } = useSession();
  const { pool, status } = useScope();
  const isPaused = status.value?.paused === true;
  return (
    <ActionButton
      key={String(isPaused)}
      label={isPaused ? 'Resume pool' : 'Pause pool'}
      title={`${isPaused ? 'Resume' : 'Pause'} the pool ${pool}?`}
      about={
        isPaused
          ? 'Waiting requests get servers at once.'
          : 'No new request gets a server until the pool is resumed. Requests that run continue.'
      }
      isDangerous={!isPaused}
      isDisabled={status.value === undefined}
      run={async (key) => {
        const params = { path: { pool }, header: { 'Idempotency-Key': key } };
        await readData(client.POST(`/api/v1/pools/{pool}/${isPaused ? 'resume' : 'pause'}`, { params }));
        return `The pool ${pool} is ${isPaused ? 'running' : 'paused'}.`;
      }}
      onDone={() => {
        status.refresh();
        onDone?.();
      }}
    />
  );
}

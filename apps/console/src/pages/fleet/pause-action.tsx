import { dataOf } from '@broomwagon/admin-client';
import { ActionButton } from '../../actions/action-button';
import { useSession } from '../../session/session';
import { useScope } from '../../shell/scope';

/** Pauses a pool, or resumes it. */
export function PauseAction() {
  const { client } = useSession();
  const { pool, status } = useScope();
  const params = (key: string) => ({ path: { pool }, header: { 'Idempotency-Key': key } });
  if (status.value?.paused) {
    return (
      <ActionButton
        key="resume"
        label="Resume pool"
        title={`Resume the pool ${pool}?`}
        about="Waiting requests get servers at once."
        run={async (key) => {
          await dataOf(client.POST('/api/v1/pools/{pool}/resume', { params: params(key) }));
          return `The pool ${pool} is running.`;
        }}
        onDone={status.refresh}
      />
    );
  }
  return (
    <ActionButton
      key="pause"
      label="Pause pool"
      title={`Pause the pool ${pool}?`}
      about="No new request gets a server until the pool is resumed. Requests that run continue."
      isDangerous
      isDisabled={status.value === undefined}
      run={async (key) => {
        await dataOf(client.POST('/api/v1/pools/{pool}/pause', { params: params(key) }));
        return `The pool ${pool} is paused.`;
      }}
      onDone={status.refresh}
    />
  );
}

import { AdminApiError, readData } from '@broomwagon/admin-client';
import { Button } from '@mantine/core';
import { useState } from 'react';
import { Problem } from '../../components/problem';
import { saveFile } from '../../components/save-file';
import { useSession } from '../../session/session';
import { useScope } from '../../shell/scope';

/** A button that saves the whole long-tail queue as JSON lines. */
export function ExportQueue({ job }: { job: string }) {
  const { client } = useSession();
  const { pool } = useScope();
  const [error, setError] = useState<AdminApiError>();
  const save = async () => {
    setError(undefined);
    try {
      const params = { path: { pool, job } };
      const address = '/api/v1/pools/{pool}/jobs/{job}/longtail/export';
      const lines = await readData(client.GET(address, { params, parseAs: 'blob' }));
      saveFile(`${job}-longtail.jsonl`, lines as unknown as Blob);
    } catch (cause) {
      setError(AdminApiError.ofFailure(cause));
    }
  };
  return (
    <>
      <Button size="compact-xs" variant="default" onClick={() => void save()}>
        Export as JSON lines
      </Button>
      <Problem error={error} />
    </>
  );
}

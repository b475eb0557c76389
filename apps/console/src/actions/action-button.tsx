import { AdminApiError } from '@broomwagon/admin-client';
import { Button, Group, Modal, Stack, Text, Tooltip } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { type ReactNode, useRef, useState } from 'react';
import { Problem } from '../components/problem';
import { useSession } from '../session/session';

interface ActionButtonProps {
  /** Text on the button and in the dialog. */
  label: string;
  title: string;
  about: ReactNode;
  children?: ReactNode;
  /** Lowest role that may make the change; default: operator. */
  role?: 'operator' | 'admin';
  isDangerous?: boolean;
  isDisabled?: boolean;
  /**
   * @param key the same for repeats, so that a repeat changes nothing
   * @returns a sentence about the finished change
   */
  run(key: string): Promise<string>;
  onDone?(): void;
}

/**
 * A button for a change that needs a role. A dialog asks for a confirmation, and shows an error. In the dialog of a
 * dangerous change the focus is on Cancel.
 */
export function ActionButton(props: ActionButtonProps) {
  const { label, title, about, children, role = 'operator', isDangerous, isDisabled, run, onDone } = props;
  const { may } = useSession();
  const [isOpen, dialog] = useDisclosure(false);
  const [isRunning, setRunning] = useState(false);
  const [error, setError] = useState<AdminApiError>();
  const [done, setDone] = useState('');
  const key = useRef('');
  const isAllowed = may(role);
  const isEnabled = isAllowed && !isDisabled;
  const open = () => {
    key.current = randomKey();
    setError(undefined);
    setDone('');
    dialog.open();
  };
  const confirm = async () => {
    setRunning(true);
    setError(undefined);
    try {
      setDone(await run(key.current));
      dialog.close();
      onDone?.();
    } catch (cause) {
      setError(AdminApiError.ofFailure(cause));
    } finally {
      setRunning(false);
    }
  };
  return (
    <>
      <Tooltip label={`Needs the role ${role}`} disabled={isAllowed}>
        <Button
          size="compact-xs"
          variant="default"
          c={isDangerous && isEnabled ? 'var(--bad)' : undefined}
          disabled={!isEnabled}
          onClick={open}
        >
          {label}
        </Button>
      </Tooltip>
      <span role="status" className="announcement">
        {done}
      </span>
      <Modal opened={isOpen} onClose={dialog.close} title={title} closeButtonProps={{ 'aria-label': 'Close' }}>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void confirm();
          }}
        >
          <Stack>
            <Text size="sm">{about}</Text>
            {children}
            <Problem error={error} />
            <Group justify="flex-end">
              <Button variant="default" onClick={dialog.close} data-autofocus={isDangerous || undefined}>
                Cancel
              </Button>
              <Button
                type="submit"
                color={isDangerous ? 'red' : undefined}
                loading={isRunning}
                data-autofocus={!isDangerous || undefined}
              >
                {label}
              </Button>
            </Group>
          </Stack>
        </form>
      </Modal>
    </>
  );
}

/** 128 random bits, hexadecimal. `crypto.randomUUID` is absent on a page that was loaded over plain HTTP. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

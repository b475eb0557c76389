import { Anchor, Stack, Text } from '@mantine/core';
import text from '../../../../../docs/operations/alerts.md?raw';
import { Section } from '../../components/stat';
import { buildHref, useRoute } from '../../address/route';
import { Markdown } from './markdown';
import { splitSections } from './sections';

const RUNBOOKS = splitSections(text);

/** The runbooks of docs/operations/alerts.md, which a browser without a network to the outside can read, too. */
export default function RunbooksPage() {
  const given = useRoute().parameters.get('name');
  const found = RUNBOOKS.filter(({ title }) => given === null || title.toLowerCase() === given.toLowerCase());
  return (
    <Stack gap="md">
      {given !== null && (
        <Anchor size="sm" href={buildHref('runbooks')}>
          All runbooks
        </Anchor>
      )}
      {found.length === 0 && <Text>There is no runbook {given} (any more).</Text>}
      {found.map(({ title, body }) => (
        <Section key={title} title={title}>
          <Markdown text={body} />
        </Section>
      ))}
    </Stack>
  );
}

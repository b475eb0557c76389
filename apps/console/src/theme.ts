import { createTheme } from '@mantine/core';

/** Colors and sizes of the console; both color schemes use them. */
export const theme = createTheme({
  primaryColor: 'cyan',
  // White text on this shade has a contrast of 5.5.
  primaryShade: 9,
  autoContrast: true,
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif',
  fontFamilyMonospace: 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace',
  defaultRadius: 'sm',
  headings: { fontWeight: '600' },
});

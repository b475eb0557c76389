import { useComputedColorScheme } from '@mantine/core';

/** Colors for canvas drawings, since a canvas reads no style sheet. Keep equal to the colors in console.css. */
const PALETTES = {
  light: {
    bar: '#0c8599',
    soft: '#a5d8de',
    warn: '#e67700',
    bad: '#c92a2a',
    good: '#2b8a3e',
    text: '#495057',
    grid: '#e9ecef',
    track: '#e9ecef',
  },
  dark: {
    bar: '#22b8cf',
    soft: '#17616d',
    warn: '#fcc419',
    bad: '#ff8787',
    good: '#69db7c',
    text: '#adb5bd',
    grid: '#343a40',
    track: '#3b3f45',
  },
};
export type Palette = (typeof PALETTES)['light'];

export function usePalette(): Palette {
  return PALETTES[useComputedColorScheme('light')];
}

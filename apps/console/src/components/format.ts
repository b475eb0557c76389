import { getZone } from './zone';

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

/** Formats of date, time and name of the zone, by zone. The locale writes dates as ISO 8601. */
const TIMES = { local: buildTimes(undefined), utc: buildTimes('UTC') };

function buildTimes(timeZone: string | undefined) {
  const zone = new Intl.DateTimeFormat('en-GB', { timeZone, timeZoneName: 'short' });
  return { time: new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'medium' }), zone };
}

export const count = (value: number): string => whole.format(value);
export const compact = (value: number): string => short.format(value);
const BYTE_UNITS = ['B', 'kB', 'MB', 'GB', 'TB'];

/** Formats a number of bytes: `1.4 GB`. */
export function bytes(value: number): string {
  const power = Math.min(BYTE_UNITS.length - 1, Math.floor(Math.log10(Math.max(1, value)) / 3));
  return `${(value / 1_000 ** power).toFixed(power === 0 ? 0 : 1)} ${BYTE_UNITS[power]}`;
}
export const percent = (share: number, digits = 0): string => `${(share * 100).toFixed(digits)} %`;

/** Formats milliseconds since 1970 as date and time with the zone: `2026-11-29 15:02:11 UTC`. */
export function dateTime(ms: number): string {
  const { time, zone } = TIMES[getZone()];
  const name = zone.formatToParts(ms).find(({ type }) => type === 'timeZoneName');
  return `${time.format(ms)} ${name === undefined ? '' : name.value}`;
}

/** Formats an id as a part of a text. Marks that turn the direction of text become \uFFFD. */
export const plainId = (id: string): string =>
  id.replaceAll(/[\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/g, '\uFFFD');

/** Formats milliseconds as a duration in its two largest units. */
export function duration(ms: number): string {
  if (ms < 9_950) return `${(Math.max(0, ms) / 1_000).toFixed(1)} s`;
  // The duration is rounded before it is divided, so that 119.6 s become 2 min 0 s.
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 1_440) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  const hours = Math.round(minutes / 60);
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

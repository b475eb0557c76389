import Table from 'cli-table3';
import pc from 'picocolors';
import { FITTED } from '../fitted';
import type { Headline, HeadlineResult } from './headline';
import { htmlReport } from '../output/html-report';
import { svgRatios } from './draw-ratios';
import type { HeadlineRun } from './run-headlines';

export function amount(value: number, unit: Headline['unit']): string {
  if (unit === 'x') return `${value.toFixed(2)}x`;
  if (unit === 'share') return `${(100 * value).toFixed(0)} %`;
  return `${Math.round(value).toLocaleString('en')}${unit === 's' ? ' s' : ''}`;
}

export function publishedText({ published, unit }: Headline): string {
  return typeof published === 'number'
    ? amount(published, unit)
    : `${amount(published[0], unit)} to ${amount(published[1], unit)}`;
}

/** Whether parameters were fitted to the headline, so that it is no evidence. */
const isFitted = ({ id }: Headline): boolean => FITTED.some(({ headlines }) => headlines.includes(id));

const verdict = (holds: boolean): string => (holds ? pc.green('holds') : pc.red('does not'));

/** Tables of a run by source and setting, so that every number has its hardware, model and cap. */
export function headlineText({ headlines, bands, seeds }: HeadlineRun): string {
  const lines = [`Published and ours, ${seeds.length} seeds: mean (least to most)`];
  for (const [place, results] of groupBy(headlines)) {
    const table = new Table({ head: ['', 'published', 'ours', 'ratio', ''], style: { head: [], border: [] } });
    for (const result of results) table.push(headlineRow(result));
    lines.push('', pc.bold(place), table.toString());
    for (const why of reasons(results)) lines.push(`  ${why}`);
  }
  const table = new Table({
    head: ['', 'must hold', 'found', ''],
    colWidths: [5, 62, 52, 10],
    wordWrap: true,
    style: { head: [], border: [] },
  });
  for (const { band, value, holds } of bands) table.push([band.id, band.what, value, verdict(holds)]);
  lines.push('', pc.bold('Bands'), table.toString());
  for (const { band, holds } of bands) if (!holds && band.why) lines.push(`  ${band.id}: ${band.why}`);
  const count = (results: readonly { holds: boolean }[]): string =>
    `${results.filter(({ holds }) => holds).length} of ${results.length}`;
  lines.push('', `${count(headlines)} headlines and ${count(bands)} bands hold.`);
  return lines.join('\n');
}

/** Content of the file of `--json`; the first five fields of a headline are for programs, the rest for people. */
export function headlineJson({ headlines, bands, seeds, measures }: HeadlineRun): object {
  return {
    headlines: headlines.map(({ headline, mean, least, most, ratio, holds }) => {
      const { id, source, setting, what, unit, published, tolerance, why } = headline;
      const note = holds ? undefined : why;
      const fitted = isFitted(headline);
      return {
        id,
        published,
        ours: mean,
        ratio,
        holds,
        least,
        most,
        unit,
        tolerance,
        source,
        setting,
        what,
        fitted,
        note,
      };
    }),
    bands: bands.map(({ band, holds, value }) => ({
      id: band.id,
      holds,
      value,
      what: band.what,
      note: holds ? undefined : band.why,
    })),
    seeds,
    measures,
  };
}

export function groupBy(headlines: readonly HeadlineResult[]): Map<string, HeadlineResult[]> {
  const groups = new Map<string, HeadlineResult[]>();
  for (const result of headlines) {
    const place = `${result.headline.source}: ${result.headline.setting}`;
    groups.set(place, [...(groups.get(place) ?? []), result]);
  }
  return groups;
}

/** Page with the tables and the plot of a run. */
export function headlinePage(run: HeadlineRun): string {
  const { headlines, bands, seeds } = run;
  const word = (holds: boolean): string => (holds ? 'holds' : 'does not');
  const rows = headlines.map((result) => [
    result.headline.setting,
    ...headlineRow(result).slice(0, -1),
    word(result.holds),
  ]);
  const intro = `Published results rerun in virtual time, ${seeds.length} seeds. Only ratios of two runs are evidence; parameters are fitted to baselines once and never to a row.`;
  return htmlReport('Published and ours', intro, [
    { title: 'Ours / published', svg: svgRatios(headlines) },
    { title: 'Headlines', table: { head: ['setting', 'what', 'published', 'ours', 'ratio', ''], rows } },
    {
      title: 'Bands',
      table: {
        head: ['', 'must hold', 'found', '', 'why not'],
        rows: bands.map(({ band, value, holds }) => [
          band.id,
          band.what,
          value,
          word(holds),
          holds ? '' : (band.why ?? ''),
        ]),
      },
    },
  ]);
}

function headlineRow({ headline, mean, least, most, ratio, holds }: HeadlineResult): string[] {
  const { unit } = headline;
  const what = isFitted(headline) ? `${headline.what} (fitted)` : headline.what;
  const ours = `${amount(mean, unit)} (${amount(least, unit)} to ${amount(most, unit)})`;
  return [what, publishedText(headline), ours, ratio.toFixed(2), verdict(holds)];
}

function reasons(results: readonly HeadlineResult[]): string[] {
  const why = results.filter(({ holds }) => !holds).map(({ headline }) => headline.why);
  return [...new Set(why.filter((reason) => reason !== undefined))];
}

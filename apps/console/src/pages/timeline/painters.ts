import type { Inks, Painter, Size } from './draw';

const FONT = '11px system-ui, "DejaVu Sans", sans-serif';

/** Draws on a canvas that has `ratio` pixels for each pixel of the page. */
export function canvasPainter(context: CanvasRenderingContext2D, inks: Inks, ratio: number): Painter {
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.font = FONT;
  context.textBaseline = 'middle';
  return {
    use: (ink) => {
      context.fillStyle = inks[ink];
    },
    rect: (x, y, width, height) => context.fillRect(x, y, width, height),
    text: (x, y, text, most) => {
      const fitting = Math.floor(most / 6);
      context.fillText(text.length > fitting ? `${text.slice(0, Math.max(1, fitting - 1))}…` : text, x, y);
    },
  };
}

/** Writes SVG. The function `text` of the result returns the whole file. */
export function svgPainter(inks: Inks, { width, height }: Size) {
  const lines: string[] = [];
  let ink = '';
  const number = (value: number): string => String(Number(value.toFixed(2)));
  const painter: Painter = {
    use: (next) => {
      ink = inks[next];
    },
    rect: (x, y, wide, high) =>
      lines.push(
        `<rect x="${number(x)}" y="${number(y)}" width="${number(wide)}" height="${number(high)}" fill="${ink}"/>`,
      ),
    text: (x, y, text, most) => {
      const fitting = text.slice(0, Math.max(1, Math.floor(most / 6)));
      lines.push(
        `<text x="${number(x)}" y="${number(y)}" fill="${ink}" dominant-baseline="middle">${escaped(fitting)}</text>`,
      );
    },
  };
  const box = `width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`;
  const head = `<svg xmlns="http://www.w3.org/2000/svg" ${box}`;
  return { painter, file: () => `${head} font-family="sans-serif" font-size="11">\n${lines.join('\n')}\n</svg>\n` };
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

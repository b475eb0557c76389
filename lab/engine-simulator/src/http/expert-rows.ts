import type { GenerateCall } from './generate-call';

/** Experts of each token: numbers in all layers, and what tells the rows of this engine from those of others. */
export interface ExpertsOption {
  layers: number;
  perToken: number;
  /** 0 to 255. */
  engine: number;
}

/** Bytes of a number: int32 of SGLang, uint16 of vLLM. */
const NUMBER_BYTES = { sglang: 4, vllm: 2 };

/**
 * Writes the experts of a request, if it reports them, as JSON: those of its whole sequence, from the row that it asks
 * for to that before the last token. Each number of a row is 256 times the number of the row, and that of the engine,
 * as far as it has bits for them.
 * @param promptTokens of the prompt, made ones not included
 */
export function expertsOf(
  { form, hasExperts, expertsFrom = 0 }: GenerateCall,
  { layers, perToken, engine }: ExpertsOption,
  promptTokens: number,
): ((made: number) => string) | undefined {
  if (!hasExperts) return undefined;
  const isFile = form !== 'sglang';
  const width = NUMBER_BYTES[isFile ? 'vllm' : 'sglang'];
  const first = isFile ? 0 : expertsFrom;
  return (made) => {
    const rows = Math.max(0, promptTokens + made - 1 - first);
    const data = Buffer.alloc(rows * layers * perToken * width);
    for (let row = 0, at = 0; row < rows; row += 1) {
      for (let number = 0; number < layers * perToken; number += 1, at += width) {
        data.writeUIntLE(((first + row) * 256 + engine) % 2 ** (8 * width), at, width);
      }
    }
    return `"${(isFile ? asFile(data, [rows, layers, perToken]) : data).toString('base64')}"`;
  };
}

/** An .npy file, as numpy writes it. */
function asFile(data: Buffer, shape: number[]): Buffer {
  const fields = `{'descr': '<u2', 'fortran_order': False, 'shape': (${shape.join(', ')}), }`;
  const header = Buffer.from(`${fields.padEnd(117)}\n`);
  const begin = Buffer.from([0x93, ...Buffer.from('NUMPY'), 1, 0, header.length, 0]);
  return Buffer.concat([begin, header, data]);
}

import type { GenerateCall } from './generate-call';

/** Form of the reported experts: layers, experts per token, and a number that marks the rows of this engine. */
export interface ExpertsOption {
  layers: number;
  perToken: number;
  /** Number of the engine, 0 to 255. */
  engine: number;
}

/** Bytes of an expert number: int32 in SGLang, uint16 in vLLM. */
const NUMBER_BYTES = { sglang: 4, vllm: 2 };

/**
 * Writes the experts of a request that asks for them as JSON: rows of its whole sequence, from the requested row to the
 * row before the last token. Each number in a row is 256 times the row number plus the engine number, cut to its bits.
 * @param promptTokens number of prompt tokens, without generated ones
 */
export function buildExperts(
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

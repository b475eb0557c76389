import type { OpaqueText } from '@broomwagon/engines';
import { computeByteLength, readFirstBytes } from './base64-bytes';

/** An .npy file of numpy, as vLLM reports experts; SGLang reports the numbers alone. */
export interface ArrayFile {
  /** Type of the numbers, as numpy names it. */
  descr: string;
  /** Rows, and the shape of a row. */
  shape: number[];
}

/** Place of the rows in a text of experts. Each row has the experts of one token, in all layers. */
export interface ExpertRows {
  /** Bytes before the first row. */
  dataAt: number;
  /** Bytes of a row. */
  width: number;
  rows: number;
  file?: ArrayFile;
}

const MAGIC = '\x93NUMPY';
/** Bytes before the length of the header. */
const LENGTH_AT = 8;
/** More bytes than any header of an array of three dimensions has. */
const HEADER_BYTES = 512;
/** The data of a file begin at a multiple of this number of bytes. */
const ALIGNMENT = 64;
/** Bytes of a number of SGLang. */
const NUMBER_BYTES = 4;

/**
 * The rows of a text of experts; undefined if it is neither a file nor a whole number of rows.
 * @param counts numbers of rows that a text without a header may have
 * @param known rows of the same response: rows of another form are rejected
 */
export function parseRows(text: OpaqueText, counts: readonly number[], known?: ExpertRows): ExpertRows | undefined {
  const bytes = computeByteLength(text);
  if (bytes === undefined) return undefined;
  const found = parseFileHeader(readFirstBytes(text, HEADER_BYTES));
  if (found !== undefined) {
    const { file, dataAt } = found;
    const [rows = 0, ...row] = file.shape;
    const width = row.reduce((product, size) => product * size, Number(/\d+$/.exec(file.descr)?.[0]));
    const isWhole = rows * width > 0 && dataAt + rows * width === bytes;
    const isAlike = known === undefined || (known.width === width && known.file?.descr === file.descr);
    return isWhole && isAlike ? { dataAt, width, rows, file } : undefined;
  }
  if (known?.file !== undefined) return undefined;
  const isPossible = (count: number): boolean =>
    count > 0 && bytes > 0 && (known ? bytes === count * known.width : bytes % (count * NUMBER_BYTES) === 0);
  const rows = counts.find(isPossible);
  return rows === undefined ? undefined : { dataAt: 0, width: bytes / rows, rows };
}

/** Header of an .npy file, as numpy writes it. */
export function buildFileHeader({ descr, shape }: ArrayFile): Buffer {
  const dimensions = shape.length === 1 ? `${shape[0]},` : shape.join(', ');
  const fields = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${dimensions}), }`;
  const before = LENGTH_AT + 2;
  const dataAt = Math.ceil((before + fields.length + 1) / ALIGNMENT) * ALIGNMENT;
  const header = Buffer.alloc(dataAt, ' ');
  header.write(MAGIC, 'latin1');
  header.writeUInt8(1, MAGIC.length);
  header.writeUInt8(0, MAGIC.length + 1);
  header.writeUInt16LE(dataAt - before, LENGTH_AT);
  header.write(fields, before);
  header.write('\n', dataAt - 1);
  return header;
}

function parseFileHeader(begin: Buffer): { file: ArrayFile; dataAt: number } | undefined {
  if (begin.length < LENGTH_AT + 4 || begin.toString('latin1', 0, MAGIC.length) !== MAGIC) return undefined;
  const isFirstVersion = begin[MAGIC.length] === 1;
  const headerAt = LENGTH_AT + (isFirstVersion ? 2 : 4);
  const dataAt = headerAt + (isFirstVersion ? begin.readUInt16LE(LENGTH_AT) : begin.readUInt32LE(LENGTH_AT));
  const header = begin.toString('latin1', headerAt, dataAt);
  const descr = /'descr': '([^']*)'/.exec(header)?.[1];
  const sizes = /'shape': \(([\d, ]*)\)/.exec(header)?.[1];
  if (descr === undefined || sizes === undefined || !header.includes("'fortran_order': False")) return undefined;
  const shape = sizes.split(',').filter((size) => size.trim() !== '');
  return { file: { descr, shape: shape.map(Number) }, dataAt };
}

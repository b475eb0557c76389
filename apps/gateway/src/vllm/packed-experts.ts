/** Experts of a mixture that served each token, as SkyRL reads them. */
export interface PackedExperts {
  /** Base64 of the numbers, in the order of C. */
  data: string;
  /** Tokens, layers, experts of a token. */
  shape: number[];
  dtype: string;
}

/** Types of numbers by their names in an .npy file. */
const DTYPES: Record<string, string> = { '|u1': 'uint8', '<u2': 'uint16', '<i4': 'int32' };
const MAGIC = '\x93NUMPY';
/** Bytes before the length of the header. */
const LENGTH_AT = 8;

/**
 * Experts as an engine reports them: packed already, or an .npy file as Base64 (vLLM). Null for anything else, of which
 * the shape is not known (SGLang).
 */
export function packedExperts(reported: unknown): PackedExperts | null {
  if (isPacked(reported)) return reported;
  if (typeof reported !== 'string') return null;
  const file = Buffer.from(reported, 'base64');
  if (file.length < LENGTH_AT + 4 || file.toString('latin1', 0, MAGIC.length) !== MAGIC) return null;
  const isFirstVersion = file[MAGIC.length] === 1;
  const headerAt = LENGTH_AT + (isFirstVersion ? 2 : 4);
  const dataAt = headerAt + (isFirstVersion ? file.readUInt16LE(LENGTH_AT) : file.readUInt32LE(LENGTH_AT));
  const header = file.toString('latin1', headerAt, dataAt);
  const dtype = DTYPES[/'descr': '([^']*)'/.exec(header)?.[1] ?? ''];
  const sizes = /'shape': \(([\d, ]*)\)/.exec(header)?.[1];
  if (dtype === undefined || sizes === undefined || !header.includes("'fortran_order': False")) return null;
  const shape = sizes.split(',').filter((size) => size.trim() !== '');
  return { data: file.toString('base64', dataAt), shape: shape.map(Number), dtype };
}

function isPacked(reported: unknown): reported is PackedExperts {
  const { data, shape, dtype } = (reported ?? {}) as Partial<PackedExperts>;
  return typeof data === 'string' && Array.isArray(shape) && typeof dtype === 'string';
}

import { isObject, type EngineDialect, type Prompt } from '@broomwagon/contracts';
import { refuseForeignFields } from './request-fields';

type Fields = Record<string, unknown>;

/** Names of one dialect for fields that the other dialect names in another way. */
const RENAMED: Partial<Record<EngineDialect, Record<string, string>>> = {
  vllm: { no_stop_trim: 'include_stop_str_in_output' },
  sglang: { include_stop_str_in_output: 'no_stop_trim' },
};

/**
 * Translates the fields of a caller for the engine, which may speak another dialect: then sampling parameters move to
 * another place, or get another name.
 * @throws BroomwagonError ENGINE_REJECTED with the field, if only engines of another dialect take the field
 */
export function toDialect(dialect: EngineDialect, fields: NonNullable<Prompt['engineFields']>): Fields {
  const { sampling_params: sampling, ...others } = fields;
  const renamed = rename(dialect, others);
  refuseForeignFields(dialect, renamed);
  if (!isObject(sampling)) return renamed;
  const parameters = rename(dialect, sampling);
  refuseForeignFields(dialect, parameters, 'sampling_params.');
  return dialect === 'vllm' ? { ...renamed, ...parameters } : { ...renamed, sampling_params: parameters };
}

/** Joins the fields of the caller and our fields. Our fields win; the sampling parameters of both are joined. */
export function withCallerFields(body: Fields, { model, sampling_params: sampling, ...others }: Fields): Fields {
  return {
    ...others,
    ...body,
    // A LoRA adapter of vLLM is named as a model.
    ...(model !== undefined && { model }),
    ...(isObject(sampling) && { sampling_params: { ...sampling, ...(body.sampling_params as object) } }),
  };
}

function rename(dialect: EngineDialect, fields: Fields): Fields {
  const names = RENAMED[dialect] ?? {};
  if (!Object.keys(fields).some((name) => Object.hasOwn(names, name))) return fields;
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [Object.hasOwn(names, name) ? names[name]! : name, value]),
  );
}

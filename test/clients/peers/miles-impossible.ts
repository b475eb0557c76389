/** Modules that tests of miles import and do not use. Of SGLang they use the types of chats and the parsers of tool calls. */
export const MILES_ABSENT = [
  'datasets',
  'polars',
  'ray',
  'sglang_router',
  'torch',
  'xgrammar',
  'sglang.',
  'sglang.utils',
  ...['configs', 'debug_utils', 'server_args', 'utils'].map((name) => `sglang.srt.${name}`),
];

const IMAGES = 'loads the image processor of Qwen2-VL, which needs torch and the model hub';

/** Tests of miles that cannot pass, by the reason. */
export const MILES_IMPOSSIBLE: Record<string, string> = Object.fromEntries(
  ['old_sglang_rollout', 'single_turn', 'multi_turn'].map((variant) => [
    `TestMultimodal::test_multimodal_inputs_processed[${variant}-generation_env0]`,
    IMAGES,
  ]),
);

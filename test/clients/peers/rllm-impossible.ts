/** Tests of rllm that cannot pass, by the reason. */
const TESTS_BY_REASON: Record<string, string[]> = {
  'adds an engine that does not answer, which the gateway refuses: requests would be sent there': [
    'TestAdmin::test_add_worker',
    'TestAdmin::test_remove_worker',
    'TestAdminWorkerAutoSplit::test_add_worker_auto_splits_url',
    'TestSyncGatewayClient::test_add_and_remove_worker[memory]',
    'TestSyncGatewayClient::test_add_and_remove_worker[sqlite]',
  ],
  'sets a version of weights without a call of an engine; engines report theirs, and leases have one from the start': [
    'TestAdmin::test_weight_version_defaults_none',
    'TestAdmin::test_set_and_get_weight_version',
    'TestAdmin::test_set_weight_version_missing',
    'TestAdmin::test_set_weight_version_invalid',
    'TestTraceCapture::test_trace_stamped_with_weight_version',
    'TestTraceCapture::test_trace_weight_version_none_when_unset',
  ],
  'expects a choice without `stop_reason` and `logprobs` in requests without a session: vLLM writes both as null too': [
    'TestProxy::test_chat_completions_bare',
    'TestProxy::test_logprobs_stripped_when_not_requested',
    'TestStreamingProxy::test_streaming_strips_vllm_fields',
    'TestStreamingProxy::test_streaming_logprobs_stripped_when_not_requested',
    'TestStreamingProxy::test_streaming_trace_intact_with_strip_vllm_off',
  ],
  'expects log probabilities in a request without a session: the gateway needs them for recorded turns only': [
    'TestProxy::test_logprobs_injected',
  ],
  'expects the status 500 of an engine: a gateway answers 502 when an engine has failed': [
    'TestWorkerFailure::test_worker_500_proxied[memory]',
    'TestWorkerFailure::test_worker_500_proxied[sqlite]',
    'TestWorkerFailure::test_partial_rollout_recovery[memory]',
    'TestWorkerFailure::test_partial_rollout_recovery[sqlite]',
  ],
};

/** Reasons by the names of the tests. */
export const RLLM_IMPOSSIBLE: Record<string, string> = Object.fromEntries(
  Object.entries(TESTS_BY_REASON).flatMap(([reason, tests]) => tests.map((test) => [test, reason])),
);

#!/usr/bin/env bash
# GRPO with long-tail rounds under verl 0.9.1 (docs/trainers/verl.md), on one machine with GPUs. Broomwagon, its NATS and
# its Redis run already, and the package of clients/python is installed beside verl:
#
#   export NATS_URL=nats://127.0.0.1:4222 POOL=default
#   GPUS=8 bash verl_long_tail.sh MODEL TRAIN.parquet TEST.parquet [SETTING=VALUE ...]
#
# A step generates 1.5 times the batch, trains the groups that end first, and cuts the others, which a tail step
# continues. `+trainer.v1.broomwagon.max_longtail_share=0.25` continues a few of them in each step instead.
# `--cfg job` prints the settings and trains nothing.
set -euo pipefail

model=$1 train=$2 test=$3
shift 3
folder=${OUTPUT:-verl-long-tail}
gpus=${GPUS:-1}

mkdir -p "$folder"
cat > "$folder/router.yaml" <<YAML
router_class: broomwagon.verl.router.Router
pool: ${POOL:-default}
capacity: ${CAPACITY:-512}
YAML

# Ray gives it to all processes of verl.
export VERL_USE_EXTERNAL_MODULES=broomwagon.verl.long_tail

exec "${PYTHON:-python3}" -m verl.trainer.main_ppo \
  trainer.v1.trainer_mode=broomwagon_long_tail \
  +trainer.v1.broomwagon.over_provision=1.5 \
  trainer.v1.sampler.max_off_policy_threshold=8 \
  algorithm.adv_estimator=grpo \
  data.train_files="$train" \
  data.val_files="$test" \
  data.train_batch_size=64 \
  data.max_prompt_length=512 \
  data.max_response_length=2048 \
  actor_rollout_ref.model.path="$model" \
  actor_rollout_ref.actor.ppo_mini_batch_size=64 \
  actor_rollout_ref.actor.use_dynamic_bsz=true \
  actor_rollout_ref.actor.use_kl_loss=false \
  actor_rollout_ref.rollout.name=vllm \
  actor_rollout_ref.rollout.n=8 \
  actor_rollout_ref.rollout.calculate_log_probs=true \
  actor_rollout_ref.rollout.gpu_memory_utilization=0.6 \
  actor_rollout_ref.rollout.router_config_path="$(realpath "$folder")/router.yaml" \
  trainer.n_gpus_per_node="$gpus" \
  trainer.nnodes=1 \
  trainer.project_name=broomwagon \
  trainer.experiment_name=long-tail \
  trainer.default_local_dir="$folder/checkpoints" \
  "trainer.logger=[console]" \
  "$@"

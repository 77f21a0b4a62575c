#!/bin/sh
# Stands in for the settlement program of the BATCH_SETTLE type: says what it would settle and
# hands a small result back. Its one argument is the spec's handler.
set -eu

echo "settling ${SCHED_PARAM_bizDate} with $1:" \
    "shard ${SCHED_PARAM_shardIndex} of ${SCHED_PARAM_shardTotal}," \
    "${SCHED_PARAM_batchSize} rows at a time into ${SCHED_PARAM_targetDb}"

printf '{"output": {"bizDate": "%s", "settled": %s}}\n' \
    "${SCHED_PARAM_bizDate}" "${SCHED_PARAM_batchSize}" > "${SCHED_RESULT}"

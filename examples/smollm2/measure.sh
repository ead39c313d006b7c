#!/bin/sh
# Writes the bundle if it is not there, and measures the loop on it: `examples/smollm2/measure.sh [FOLDER]`.
# Half an hour on two idle cores, by how many rows have to be repeated. The report goes to FOLDER.json, the tables to
# FOLDER.txt.
set -eu
here=$(dirname "$0")
bundle=${1:-smollm2}
python=${PYTHON:-python3}
[ -f "$bundle/metadata.json" ] || "$python" "$here/author.py" "$bundle"
"$python" -P -m auditor probe "$bundle" --mode ab \
    --workload chat="$here/workloads/chat.txt" \
    --workload code="$here/workloads/code.txt" \
    --workload tools="$here/workloads/tools.txt" \
    --budget "${BUDGET:-192}" --pairs "${PAIRS:-1}" --retries "${RETRIES:-2}" \
    --k 1 --k 2 --k 4 --k 8 --k adaptive:8 \
    --drafter ngram --drafter suffix --drafter tree \
    --format json --output "$bundle.json"
"$python" "$here/table.py" "$bundle.json" > "$bundle.txt"

#!/usr/bin/env bash
# Nine minutes on a machine with one NVIDIA GPU: what narrlit does there, in one JSON file for benchmarks/figures.py.
#
#     WHEELS=wheels bash release/gpu_check.sh [--out runs/gpu_check.json]
#     bash release/gpu_check.sh --tiny        # every part on the CPU with tiny sizes: measures nothing
#
# It needs this working tree, Python 3.11 or later, torch with CUDA, a driver, 40 GB of GPU memory for 8 billion
# parameters in bfloat16, 20 GB of disk below $TMPDIR, and no network. WHEELS is a folder with the wheels of narrlit and
# of what the machine lacks; without it, all is installed already. On a machine with network, for the same Python:
#
#     python -m pip wheel --wheel-dir wheels -c constraints.txt '.[bench,quant,parquet,explore]' pytest hypothesis psutil
#     rm wheels/torch-* wheels/nvidia_* wheels/triton-*        # the machine has its own
set -euo pipefail
began=$(date +%s)
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
if [ -n "${WHEELS:-}" ]; then
    [ -d "$WHEELS" ] || { echo "WHEELS=$WHEELS: there is no such folder" >&2; exit 2; }
    "$python" -m venv --system-site-packages runs/gpu_check/venv
    python=runs/gpu_check/venv/bin/python
    "$python" -m pip install --quiet --no-index --no-deps "$WHEELS"/*.whl
fi
export PYTHONPATH="$PWD/src:$PWD/benchmarks" HF_HUB_OFFLINE=1
exec "$python" release/gpu_check.py --began "$began" "$@"

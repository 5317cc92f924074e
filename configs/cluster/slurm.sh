#!/bin/bash
# Trains a job on the nodes that Slurm gives it, and goes on when one of them fails or the time is over:
#
#   sbatch configs/cluster/slurm.sh --trainer_desc=FILE --output_dir=DIR [flags of trainer]
#
# Copy it and set what your cluster wants. Program, input files and output folder have the same names on all nodes.
#SBATCH --job-name=millrace
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=4
#SBATCH --time=12:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
# Ranks stop with a checkpoint so many seconds before the time is over.
#SBATCH --signal=USR1@120
TRAINER=${TRAINER:-trainer}
MOST_RESTARTS=${MOST_RESTARTS:-20}

# A rank that is lost ends the step: the others cannot go on without it.
srun --mpi=pmix --kill-on-bad-exit=1 --cpu-bind=none "$TRAINER" "$@" --resume=auto
code=$?
case $code in
  # Done, or what would come again: configuration, data, disk, a bug.
  0 | 2 | 3 | 4) exit "$code" ;;
esac
# A rank was lost, or the time is over. Where a node failed, Slurm has requeued the job itself by now.
if ((${SLURM_RESTART_COUNT:-0} >= MOST_RESTARTS)); then
  echo "slurm.sh: srun ended with $code; gives up after $MOST_RESTARTS restarts" >&2
  exit "$code"
fi
echo "slurm.sh: srun ended with $code; the job is queued again, and goes on from its newest checkpoint" >&2
exec scontrol requeue "$SLURM_JOB_ID"

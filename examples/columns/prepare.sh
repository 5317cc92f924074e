#!/usr/bin/env bash
# Splits raw files into lines to train on and lines to test on, below build/columns. The lines stay as they are.
#
#   examples/columns/prepare.sh [DATA_FOLDER] [OUT_FOLDER]
set -euo pipefail
DATA=${1:-../shared/data}
OUT=${2:-build/columns}
mkdir -p "$OUT"

# The last tenth of the people tests.
zcat "$DATA/census_income_kdd/census_income_1994_1995_train.csv.gz" |
  awk -v out="$OUT" '{ print > (out "/census." (NR <= 179571 ? "train" : "test") ".csv") }'
# Every fifth rating tests. Both files have the header.
zcat "$DATA/movielens_latest_small/ratings.csv.gz" |
  awk -v out="$OUT" 'NR == 1 || NR % 5 { print > (out "/ratings.train.csv") } NR == 1 || !(NR % 5) { print > (out "/ratings.test.csv") }'
# In time order: the last 2,000 impressions test.
zcat "$DATA/criteo_day0_10k/day_0.part.txt.gz" |
  awk -v out="$OUT" '{ print > (out "/criteo." (NR <= 8000 ? "train" : "test") ".tsv") }'

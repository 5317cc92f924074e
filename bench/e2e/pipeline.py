#!/usr/bin/env python3
"""Compares a program cut into two equal sections with the same program in one thread, and prints ratios as Markdown.

    bench/e2e/pipeline.py [--trainer build/release/bin/trainer] [--rounds 5]

The program is a stack of equal fully connected layers, cut in the middle, trained from memory on rows of random numbers. Every
round runs each system once, so that a drift of the machine meets all of them. The losses must agree to the last digit;
exit code 1 when they do not, or when the median ratio of a cut is below --at_least.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

PIPELINE = 'class_name: "PipelineTrainer" device_worker_name: "SectionWorker" section_param {{ num_microbatches: 16 {} }}'
HALVES = 'section_config { section_out_var_names: "bottom" } section_config {}'
SYSTEMS = {
    "one thread (MultiTrainer)": "",
    "one section": PIPELINE.format("section_config {}"),
    "two sections, F-then-B": PIPELINE.format(HALVES + " queue_size: 4"),
    "two sections, 1F1B": PIPELINE.format(HALVES + " queue_size: 4 schedule_mode: 1"),
}


def write_job(folder, width, layers, rows):
    numbers = random.Random(1)
    with open(f"{folder}/part", "w", encoding="utf-8") as out:
        for _ in range(rows):
            values = " ".join(f"{numbers.gauss(0, 1):.3f}" for _ in range(width))
            out.write(f"1 {numbers.randrange(2)} {width} {values}\n")
    half = ", ".join([str(width)] * (layers // 2))
    with open(f"{folder}/job.prototxt", "w", encoding="utf-8") as out:
        out.write(f"""
filelist: "{folder}/part"
epochs: 3
dataset {{ class_name: "InMemoryDataset" }}
data_desc {{ batch_size: 128 multi_slot_desc {{
  slots {{ name: "label" type: "float" is_used: true is_dense: true shape: [-1, 1] }}
  slots {{ name: "x" type: "float" is_used: true is_dense: true shape: [-1, {width}] }} }} }}
model {{
  layer {{ name: "bottom" fc {{ in: "x" units: [{half}] act: RELU }} }}
  layer {{ name: "top" fc {{ in: "bottom" units: [{half}] act: RELU }} }}
  layer {{ name: "y" fc {{ in: "top" units: 1 act: SIGMOID }} }}
  loss {{ kind: LOG_LOSS in: "y" label: "label" }}
  metric {{ kind: LOGLOSS }}
  optimizer {{ sgd {{ lr: 0.01 }} }}
}}
output {{ tensorboard: false save_inference_model: false }}
checkpoint {{ every_epochs: 0 }}
""")


def train(trainer, folder, extra):
    job = f"{folder}/job-extra.prototxt"
    with open(f"{folder}/job.prototxt", encoding="utf-8") as source, open(job, "w", encoding="utf-8") as out:
        out.write(source.read() + extra + "\n")
    done = subprocess.run([trainer, f"--trainer_desc={job}", f"--output_dir={folder}/out"],
                          capture_output=True, text=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if done.returncode != 0:
        sys.exit(done.stderr)
    with open(f"{folder}/out/run.json", encoding="utf-8") as f:
        report = json.load(f)
    return report["examples_per_second"], report["metrics"]["logloss"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainer", default="build/release/bin/trainer")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--rows", type=int, default=8192)
    parser.add_argument("--at_least", type=float, default=1.6)
    args = parser.parse_args()
    rates = {name: [] for name in SYSTEMS}
    losses = {}
    with tempfile.TemporaryDirectory() as folder:
        write_job(folder, args.width, args.layers, args.rows)
        for _ in range(args.rounds):
            for name, extra in SYSTEMS.items():
                rate, losses[name] = train(args.trainer, folder, extra)
                rates[name].append(rate)
    plain = "one thread (MultiTrainer)"
    print("| | examples/s (median) | to one thread (median of rounds) | logloss |\n|---|---|---|---|")
    ratios = {name: statistics.median(a / b for a, b in zip(rates[name], rates[plain])) for name in SYSTEMS}
    for name in SYSTEMS:
        print(f"| {name} | {statistics.median(rates[name]):.0f} | {ratios[name]:.2f} | {losses[name]:.9f} |")
    cut = [name for name in SYSTEMS if name.startswith("two")]
    same = all(losses[name] == losses["one section"] for name in cut)
    return 0 if same and all(ratios[name] >= args.at_least for name in cut) else 1


if __name__ == "__main__":
    sys.exit(main())

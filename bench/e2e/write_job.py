#!/usr/bin/env python3
"""Writes the trainer job of the benchmark model over a generated log.

The model is the peers' own: 26 tables of dim 16 with one row per id, sum pooling, the 13 floats beside them, fc 400-400-400
with ReLU, two logits plus a linear part on the floats, softmax cross entropy, Adagrad 0.01, batch 512. --model lr is a
logistic regression over the same slots.
"""
import argparse
import json
import sys


def table(name, dim, vocabulary):
    return f'  table {{ name: "{name}" dim: {dim} vocabulary: {vocabulary} init {{ uniform: 0.01 }} }}\n'


def hash_table(name, dim):
    return f'  table {{ name: "{name}" dim: {dim} key: SLOT_AND_ID init {{ uniform: 0.01 }} }}\n'


def deep_model(vocabulary, tables):
    text = ""
    if tables == "hash":
        text += hash_table("deep", 16)
        text += '  layer { name: "d" embedding { slots: "C1..C26" table: "deep" } }\n'
        parts = ["d"]
    else:
        for i, size in enumerate(vocabulary, 1):
            text += table(f"emb{i}", 16, size)
        for i in range(1, len(vocabulary) + 1):
            text += f'  layer {{ name: "d{i}" embedding {{ slots: "C{i}" table: "emb{i}" }} }}\n'
        parts = [f"d{i}" for i in range(1, len(vocabulary) + 1)]
    inputs = ", ".join(f'"{p}"' for p in parts + ["dense"])
    return text + f"""  layer {{ name: "x" concat {{ in: [{inputs}] }} }}
  layer {{ name: "h" fc {{ in: "x" units: [400, 400, 400] act: RELU init {{ xavier_normal: true }} }} }}
  layer {{ name: "deep_logit" fc {{ in: "h" units: 2 }} }}
  layer {{ name: "wide_logit" fc {{ in: "dense" units: 2 }} }}
  layer {{ name: "logit" add {{ in: ["deep_logit", "wide_logit"] }} }}
  loss {{ kind: SOFTMAX_CROSS_ENTROPY in: "logit" label: "label" }}
  optimizer {{ adagrad {{ lr: 0.01 }} }}
"""


def lr_model():
    return """  table { name: "w" dim: 1 key: SLOT_AND_ID init { constant: 0 } initial_rows: 2000000 }
  layer { name: "ids" embedding { slots: "C1..C26" table: "w" } }
  layer { name: "sum" reduce_sum { in: "ids" } }
  layer { name: "floats" fc { in: "dense" units: 1 init { constant: 0 } } }
  layer { name: "logit" add { in: ["sum", "floats"] } }
  loss { kind: SIGMOID_CROSS_ENTROPY in: "logit" label: "label" }
  optimizer { adagrad { lr: 0.05 } }
"""


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", required=True, help="folder that gen.py wrote")
    p.add_argument("--split", default="train")
    p.add_argument("--parts", type=int, default=8)
    p.add_argument("--dataset", choices=["QueueDataset", "InMemoryDataset"], default="InMemoryDataset")
    p.add_argument("--model", choices=["deep", "lr"], default="deep")
    p.add_argument("--tables", choices=["dense", "hash"], default="dense")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--mode", choices=["HOGWILD", "SERIAL", "ROW_LOCK"], default="HOGWILD")
    p.add_argument("--epochs", type=int, default=1)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--precision", choices=["FP32", "BF16"], default="FP32")
    p.add_argument("--pipe", default="cat")
    p.add_argument("--eval", action="store_true")
    p.add_argument("--shuffle", action="store_true")
    a = p.parse_args()
    with open(a.data + "/meta.json", encoding="utf-8") as f:
        vocabulary = json.load(f)["vocab"]
    model = lr_model() if a.model == "lr" else deep_model(vocabulary, a.tables)
    files = "".join(f'filelist: "{a.data}/{a.split}/part-{i:05d}"\n' for i in range(a.parts))
    evaluation = f'eval {{ filelist: "{a.data}/test/part-*" }}\n' if a.eval else ""
    sys.stdout.write(f"""thread_num: {a.threads}
update_mode: {a.mode}
seed: {a.seed}
epochs: {a.epochs}
precision: {a.precision}
{files}data_desc {{
  batch_size: 512
  pipe_command: "{a.pipe}"
  multi_slot_desc {{
    slots {{ name: "label" type: "uint64" is_used: true is_dense: true shape: [-1, 1] }}
    slots {{ name: "dense" type: "float" is_used: true is_dense: true shape: [-1, 13] }}
    slots {{ name: "C1..C26" type: "uint64" is_used: true }}
  }}
}}
dataset {{ class_name: "{a.dataset}" local_shuffle: {str(a.shuffle).lower()} }}
model {{
{model}  metric {{ kind: AUC }}
  metric {{ kind: LOGLOSS }}
}}
fetch_config {{ print_period: 0 }}
checkpoint {{ every_epochs: 0 }}
{evaluation}output {{ tensorboard: false save_inference_model: false }}
""")


if __name__ == "__main__":
    main()

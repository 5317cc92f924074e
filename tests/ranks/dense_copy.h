// Dense variables of a rank, for tests of what ranks exchange.

#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/scope.h"
#include "runtime/tensor.h"

namespace millrace {

inline constexpr int64_t kSize = 7;
inline constexpr int64_t kSmallSize = 3;

/// Writes a parameter "w" with Adagrad's "acc", a small one "b", a running "mean" and a "count".
inline constexpr char kProgram[] = R"pb(
  blocks {
    idx: 0
    parent_idx: -1
    vars {
      name: "w"
      persistable: true
      type {
        type: LOD_TENSOR
        lod_tensor { tensor { data_type: FP32 dims: 7 } }
      }
    }
    vars {
      name: "acc"
      persistable: true
      type {
        type: LOD_TENSOR
        lod_tensor { tensor { data_type: FP32 dims: 7 } }
      }
    }
    vars {
      name: "g"
      persistable: true
      type {
        type: LOD_TENSOR
        lod_tensor { tensor { data_type: FP32 dims: 7 } }
      }
    }
    vars {
      name: "mean"
      persistable: true
      type {
        type: LOD_TENSOR
        lod_tensor { tensor { data_type: FP32 dims: 7 } }
      }
    }
    vars {
      name: "b"
      persistable: true
      type {
        type: LOD_TENSOR
        lod_tensor { tensor { data_type: FP32 dims: 3 } }
      }
    }
    vars {
      name: "b_g"
      persistable: true
      type {
        type: LOD_TENSOR
        lod_tensor { tensor { data_type: FP32 dims: 3 } }
      }
    }
    vars {
      name: "lr"
      persistable: true
      type {
        type: LOD_TENSOR
        lod_tensor { tensor { data_type: FP32 dims: 1 } }
      }
    }
    vars {
      name: "count"
      persistable: true
      type {
        type: LOD_TENSOR
        lod_tensor { tensor { data_type: INT64 dims: 1 } }
      }
    }
    ops {
      type: "adagrad"
      inputs { parameter: "Param" arguments: "w" }
      inputs { parameter: "Grad" arguments: "g" }
      inputs { parameter: "Moment" arguments: "acc" }
      inputs { parameter: "LearningRate" arguments: "lr" }
      outputs { parameter: "ParamOut" arguments: "w" }
      outputs { parameter: "MomentOut" arguments: "acc" }
    }
    ops {
      type: "sgd"
      inputs { parameter: "Param" arguments: "b" }
      inputs { parameter: "Grad" arguments: "b_g" }
      inputs { parameter: "LearningRate" arguments: "lr" }
      outputs { parameter: "ParamOut" arguments: "b" }
    }
    ops {
      type: "scale"
      inputs { parameter: "X" arguments: "mean" }
      outputs { parameter: "Out" arguments: "mean" }
    }
    ops {
      type: "increment"
      inputs { parameter: "X" arguments: "count" }
      outputs { parameter: "Out" arguments: "count" }
    }
  })pb";

/// The values of a rank.
struct Copy {
  Scope root;
  explicit Copy(float start) {
    for (const char* name : {"w", "acc", "mean", "b"}) {
      const int64_t size = name[0] == 'b' ? kSmallSize : kSize;
      std::fill_n(root.Var(name)->GetMutable<Tensor>()->Resize<float>({size}), size, start);
    }
    *root.Var("count")->GetMutable<Tensor>()->Resize<int64_t>({1}) = 5;
  }
  std::vector<float> Values(const char* name) const {
    const auto& tensor = root.Find(name)->Get<Tensor>();
    return {tensor.data<float>(), tensor.data<float>() + tensor.numel()};
  }
  int64_t count() const { return *root.Find("count")->Get<Tensor>().data<int64_t>(); }
  void Move(float by) {
    for (const char* name : {"w", "acc", "mean", "b"}) {
      auto* const tensor = root.Var(name)->GetMutable<Tensor>();
      for (int64_t i = 0; i < tensor->numel(); ++i) tensor->mutable_data<float>()[i] += by;
    }
    ++*root.Var("count")->GetMutable<Tensor>()->mutable_data<int64_t>();
  }
};

}  // namespace millrace

#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "core/status.h"
#include "program/op_list.h"
#include "program/op_registry.h"

namespace millrace {

/// Rewrites a list of operators so that fewer do the same work. Each pass leaves alone what it cannot prove and what
/// `registry` has no operator for; `fetches` and persistable variables stay written. In this order:
///
/// - lookup_table(_v2), sequence_pool(, reshape2) of a slot become a fused_slots_pool, those that a concat sets side by
///   side become one, and so do their gradients (the sum over the parts of a shared table goes);
/// - softmax and the cross_entropy(2) of its result become softmax_with_cross_entropy;
/// - mul or matmul_v2 by a parameter (X of two axes or more), elementwise_add, activation become fused_fc, their
///   gradients fused_fc_grad;
/// - all sgd (adagrad, adam, ...) of one learning rate and equal attributes become one fused_sgd (...).
///
/// fused_slots_pool: Ids[k] (one a slot), W[k] (table of each; the same or different), Dense[m] (optional, [B, n]
/// without gradient) -> Out [B, sum of widths], Rows (optional, kind RAW: the distinct keys and their rows, which the
/// gradient needs). Attributes: pooltype; padding_idx; slot_salts (k longs as two's complement, 0: none; only set when
/// a lookup has "slot_salt" != 0); out_of_range; dense_at (m ints: the number of slots that stand before each dense
/// input, ascending).
///
/// fused_slots_pool_grad: Ids[k], W[k], Rows, Out@GRAD -> W@GRAD[number of distinct W, in order of their first slot],
/// each a merged SelectedRows; the forward's attributes and `dense_widths` (m ints).
///
/// fused_fc: X, W, Bias (optional) -> Out; attributes in_num_col_dims, activation ("", "relu", "sigmoid", "tanh",
/// "softmax"). fused_fc_grad: X, W, Out, Out@GRAD -> X@GRAD, W@GRAD, Bias@GRAD (each may be "@EMPTY@").
///
/// fused_sgd: Param[], Grad[], LearningRate -> ParamOut[]; fused_adagrad adds Moment[], MomentOut[]; and so on: the
/// single operator's parameters, as lists, its attributes unchanged.
///
/// `vars` loses what nothing writes any more and gains what the fused operators write. A stop request ends it
/// between two operators: kCancelled, with neither of any use.
Status ApplyFusionPasses(OpList& ops, VarMetas& vars, const OpRegistry& registry,
                         const std::vector<std::string>& fetches, const std::stop_token& stop = {});

}  // namespace millrace

"""Layers: functions that append operators to the default main program and return what they compute.

Names and arguments are those of Paddle's fluid.layers. What does not fit raises ConfigError at the call.
"""

from collections.abc import Mapping
import operator
import traceback

from . import _checks, _millrace
from ._settings import quoted
from .errors import ConfigError
from .framework import ParamAttr, Variable, default_main_program
from .initializer import Constant, Xavier

_UNARY = ("relu", "sigmoid", "tanh", "square", "sqrt", "exp", "log", "abs", "sign", "logsigmoid", "softplus", "relu6",
          "reciprocal", "rsqrt", "floor", "ceil", "sin", "cos")
_ELEMENTWISE = ("add", "sub", "mul", "div", "max", "min", "pow")
_REDUCE = ("sum", "mean", "max", "min", "prod")

__all__ = ["accuracy", "auc", "assign", "cast", "clip", "concat", "cross_entropy", "data", "dropout", "embedding",
           "expand_dims", "fc", "fill_constant", "gather", "log_loss", "matmul", "mean", "mul", "ones_like",
           "one_hot", "op", "reshape", "scale", "sequence_pool", "sigmoid_cross_entropy_with_logits", "slice", "softmax",
           "softmax_with_cross_entropy", "split", "square_error_cost", "squeeze", "stack", "sum", "sums", "topk",
           "transpose", "unsqueeze", *_UNARY, *("elementwise_" + name for name in _ELEMENTWISE),
           *("reduce_" + name for name in _REDUCE)]


def op(type, inputs, attrs=None, outputs=None, name=None):
    """Appends any operator and returns its outputs: one Variable, or a tuple in the order of `outputs`.

    inputs   {"X": variable or list of them}
    attrs    {"axis": 1}; what is not there has the operator's default
    outputs  names of outputs to bind, ["Out"] or {"Out": number, or variables to write}; by default every output that
             the operator must have
    name     of the first output, and the start of the others' names

    millrace.op_info(type) shows inputs, outputs and attributes, millrace.op_types() every operator.
    """
    if not isinstance(inputs, Mapping):
        raise ConfigError('%s: inputs are a dict, {"X": variable}, not %r' % (type, inputs))
    if attrs is not None and not isinstance(attrs, Mapping):
        raise ConfigError('%s: attrs are a dict, {"axis": 1}, not %r' % (type, attrs))
    program = _program_of(inputs)
    info = _millrace.op_info(type)
    bound = [(parameter, [_check(var, program, type, parameter).name for var in _list(given)])
             for parameter, given in inputs.items()]
    wanted = outputs
    if wanted is None:
        wanted = [output for output, _, _, optional in info["outputs"] if not optional]
    if not isinstance(wanted, dict):
        wanted = {parameter: 1 for parameter in wanted}
    stem = name or program.unique_name(type)
    made, names = [], []
    for position, (parameter, count) in enumerate(wanted.items()):
        if isinstance(count, int):
            plain = stem if position == 0 and name else "%s.%s" % (stem, parameter.lower())
            fresh = [plain if count == 1 else "%s_%d" % (plain, i) for i in range(count)]
        else:
            fresh = [_check(var, program, type, parameter).name for var in _list(count)]
        names.append((parameter, fresh))
        made += fresh
    program._author.append(type, bound, names, dict(attrs or {}))
    place = _caller()
    for output in made:
        program._lines[output] = place
    variables = tuple(Variable(program, output) for output in made)
    return variables[0] if len(variables) == 1 else variables


def data(name, shape, dtype="float32", lod_level=0, append_batch_size=True):
    """A slot of the input: the variable that batches are fed to.

    shape      of a row, [13]; a -1 for the batch is put before it unless there is one. With lod_level 1 (sparse slots, any
               number of values in a row) the variable is [values, 1].
    dtype      "float32", or "int64" for ids and classes
    """
    program = default_main_program()
    if not isinstance(name, str):
        raise ConfigError("data: a slot's name is a str, not %r" % (name,))
    sizes = [-1 if size is None else _count("data", "shape", size)
             for size in _checks.listed('data "%s": shape' % name, shape, "sizes")]
    if isinstance(dtype, bool):
        raise ConfigError('data "%s": dtype is %r; give append_batch_size by its name' % (name, dtype))
    if append_batch_size and -1 not in sizes:
        sizes = [-1] + sizes
    if program._author.has(name):
        raise ConfigError('data: there is a variable "%s" already; a model that is written again, as when a notebook\'s cell runs '
                          "twice, goes to new programs: with millrace.program_guard(millrace.Program(), millrace.Program())" % name)
    program._author.add_data(name, _dtype_name(dtype), sizes, _checks.whole('data "%s": lod_level' % name, lod_level, 0))
    return Variable(program, name)


def embedding(input, size, is_sparse=True, is_distributed=False, padding_idx=None, param_attr=None, dtype="float32",
              per_slot=False, optimizer=None, out_of_range=None, initial_rows=None):
    """Rows of a table by id: [values, dim], or [batch, dim] of a dense slot [batch, 1].

    size          [vocabulary, dim], or [None, dim] for a table that takes any 64-bit id and grows
    padding_idx   the id whose row is zero and stays zero
    param_attr    equal names share a table
    per_slot      a growing table keeps equal ids of two slots apart
    optimizer     the rule of this table, by default that of minimize
    out_of_range  "ERROR", "ZERO" or "MODULO" for ids beyond the vocabulary

    Gradients are sparse, whatever is_sparse says: rows that a batch does not touch are not updated.
    """
    if dtype != "float32":
        raise ConfigError("embedding: rows are float32, not %s" % dtype)
    program = _program_of({"input": input})
    attr = ParamAttr.of(param_attr)
    stem = program.unique_name("embedding")
    table = attr.name or stem + ".w_0"
    if len(_list(size)) != 2:
        raise ConfigError("embedding: size is [vocabulary, dim], not %r" % (size,))
    vocabulary, dim = [None if part is None else _count("embedding", "size", part) for part in size]
    if dim is None:
        raise ConfigError("embedding: size is [vocabulary, dim], not %r" % (size,))
    fields = ["name: %s" % quoted(table), "dim: %d" % dim]
    if vocabulary is not None and vocabulary >= 0:
        fields.append("vocabulary: %d" % vocabulary)
    if padding_idx is not None:
        padding_idx = _count("embedding", "padding_idx", padding_idx)
        if padding_idx < 0 and vocabulary is None:
            raise ConfigError("embedding: padding_idx %d counts from the end of a vocabulary, and a table that grows has none" %
                              padding_idx)
        fields.append("padding_idx: %d" % (padding_idx if padding_idx >= 0 else vocabulary + padding_idx))
    if per_slot:
        fields.append("key: SLOT_AND_ID")
    if out_of_range is not None:
        if out_of_range not in ("ERROR", "ZERO", "MODULO"):
            raise ConfigError('embedding: out_of_range is "ERROR", "ZERO" or "MODULO", not %r' % (out_of_range,))
        fields.append("out_of_range: %s" % out_of_range)
    if initial_rows is not None:
        fields.append("initial_rows: %d" % initial_rows)
    default = Xavier() if "vocabulary" in " ".join(fields) else None
    initializer = attr.initializer or default
    if initializer is not None:
        fields.append("init { %s }" % initializer.text)
    if optimizer is not None:
        fields.append("optimizer { %s }" % optimizer.text)
    program._author.add_table(" ".join(fields))
    out = stem + ".tmp_0"
    if attr._rule():
        program._author.set_rule(table, attr._rule())
    program._author.look_up(_check(input, program, "embedding", "input").name, table, out)
    program._lines[out] = _caller()
    return Variable(program, out)


def sequence_pool(input, pool_type, pad_value=0.0):
    """One row for the rows of each sequence: "sum", "average", "sqrt", "max", "first" or "last". [batch, dim]"""
    _checks.text("sequence_pool: pool_type", pool_type)
    outputs = ["Out", "MaxIndex"] if pool_type.upper() == "MAX" else ["Out"]
    made = op("sequence_pool", {"X": input}, {"pooltype": pool_type.upper(), "pad_value": float(pad_value)}, outputs)
    return made[0] if isinstance(made, tuple) else made


def fc(input, size, num_flatten_dims=1, param_attr=None, bias_attr=None, act=None, name=None):
    """Fully connected: act(input W + b), [batch, size]. Several inputs have a W each; their products are added.

    bias_attr=False leaves b out. Parameters are NAME.w_0 (one for each input) and NAME.b_0.
    """
    inputs = _list(input)
    size = _count("fc", "size", size)
    program = _program_of({"input": inputs})
    stem = name or program.unique_name("fc")
    attr = ParamAttr.of(param_attr)
    products = []
    for i, x in enumerate(inputs):
        shape = _check(x, program, "fc", "input").shape
        columns = 1
        for extent in shape[num_flatten_dims:]:
            columns *= extent
        if len(shape) <= num_flatten_dims or columns < 1:
            raise ConfigError('fc: "%s" %s has no columns behind its first %d axes' % (
                x.name, list(shape), num_flatten_dims))
        weight = _parameter(program, attr, "%s.w_%d" % (stem, i), [columns, size], Xavier(), i if len(inputs) > 1 else None)
        products.append(op("mul", {"X": x, "Y": weight}, {"x_num_col_dims": num_flatten_dims, "y_num_col_dims": 1},
                           name=program.unique_name(stem + ".tmp")))
    out = products[0] if len(products) == 1 else sums(products)
    if bias_attr is not False:
        bias = _parameter(program, ParamAttr.of(bias_attr), stem + ".b_0", [size], Constant(0.0))
        out = op("elementwise_add", {"X": out, "Y": bias}, {"axis": num_flatten_dims},
                 name=program.unique_name(stem + ".tmp"))
    return _activate(out, act, stem)


def concat(input, axis=1):
    """Sets variables side by side along an axis: [batch, a] and [batch, b] become [batch, a + b]."""
    return op("concat", {"X": _list(input)}, {"axis": axis})


def cross_entropy(input, label, soft_label=False, ignore_index=-100):
    """-log of the probability that `input` [batch, classes] gives the class `label` [batch, 1]. [batch, 1]"""
    return op("cross_entropy", {"X": input, "Label": label}, {"soft_label": soft_label, "ignore_index": ignore_index})


def softmax_with_cross_entropy(logits, label, soft_label=False, ignore_index=-100, return_softmax=False):
    """The same of logits. [batch, 1]; with return_softmax also the probabilities."""
    probabilities, loss = op("softmax_with_cross_entropy", {"Logits": logits, "Label": label},
                             {"soft_label": soft_label, "ignore_index": ignore_index}, ["Softmax", "Loss"])
    return (loss, probabilities) if return_softmax else loss


def sigmoid_cross_entropy_with_logits(x, label, ignore_index=-100, normalize=False):
    """Cross entropy of the logit `x` and the label; floats of one shape, [batch, 1] as a rule."""
    return op("sigmoid_cross_entropy_with_logits", {"X": x, "Label": label},
              {"ignore_index": ignore_index, "normalize": normalize})


def log_loss(input, label, epsilon=1e-4):
    """-label log(input + epsilon) - (1 - label) log(1 - input + epsilon); floats of one shape, [batch, 1] as a rule."""
    return op("log_loss", {"Predicted": input, "Labels": label}, {"epsilon": epsilon})


def square_error_cost(input, label):
    """(input - label)^2 of every value: both of one shape, [batch, 1] as a rule, which the result has."""
    return square(elementwise_sub(input, label))  # noqa: F821 (made below)


def mean(x):
    """The mean of all values, [1]."""
    return op("mean", {"X": x})


def accuracy(input, label, k=1):
    """The share of rows whose class is among the k most likely, [1]."""
    values, indices = topk(input, k)
    return op("accuracy", {"Out": values, "Indices": indices, "Label": label}, None, ["Accuracy", "Correct", "Total"])[0]


def auc(input, label, curve="ROC", num_thresholds=2 ** 12 - 1, topk=1, slide_steps=1):
    """(auc of all batches so far, auc of the last slide_steps batches, their states). `input` is [batch, 2]."""
    program = _program_of({"input": input})
    found, states = [], []
    for steps in (slide_steps, 0):
        stats = []
        for sign in ("pos", "neg"):
            name = program.unique_name("auc_stat_%s" % sign)
            program._author.add_state(name, "int64", [max(steps, 1), num_thresholds + 1], 0.0)
            stats.append(Variable(program, name))
        program.auc_states += [stat.name for stat in stats]
        out = op("auc", {"Predict": input, "Label": label, "StatPos": stats[0], "StatNeg": stats[1]},
                 {"curve": curve, "num_thresholds": num_thresholds, "slide_steps": steps},
                 {"AUC": 1, "StatPosOut": stats[0], "StatNegOut": stats[1]})
        found.append(out[0])
        states += stats
    return found[1], found[0], states


def dropout(x, dropout_prob, is_test=False, seed=None, dropout_implementation="downgrade_in_infer"):
    """Sets a random part to zero while training; the shape of x."""
    attrs = {"dropout_prob": float(dropout_prob), "is_test": is_test, "dropout_implementation": dropout_implementation}
    if seed is not None:
        attrs.update(seed=seed, fix_seed=True)
    return op("dropout", {"X": x}, attrs, ["Out", "Mask"])[0]


def softmax(input, axis=-1):
    """Probabilities along an axis; the shape of input, [batch, classes] as a rule."""
    return op("softmax", {"X": input}, {"axis": axis})


def scale(x, scale=1.0, bias=0.0, bias_after_scale=True):
    """scale * x + bias of every value, or scale * (x + bias) without bias_after_scale; the shape of x."""
    return op("scale", {"X": x}, {"scale": float(scale), "bias": float(bias), "bias_after_scale": bias_after_scale})


def cast(x, dtype):
    """The same values in another type ("float32", numpy.int64); the shape of x."""
    return op("cast", {"X": x}, {"in_dtype": _DTYPES[x.dtype], "out_dtype": _dtype(dtype)})


def clip(x, min, max):
    """Values held within [min, max]."""
    return op("clip", {"X": x}, {"min": float(min), "max": float(max)})


def matmul(x, y, transpose_x=False, transpose_y=False, alpha=1.0):
    """alpha * x y: [..., m, k] and [..., k, n] become [..., m, n]; transpose_x takes [..., k, m], transpose_y [..., n, k]."""
    return op("matmul", {"X": x, "Y": y}, {"transpose_X": transpose_x, "transpose_Y": transpose_y, "alpha": float(alpha)})


def mul(x, y, x_num_col_dims=1, y_num_col_dims=1):
    """x y as matrices, cut behind so many axes: [batch, k] and [k, n] become [batch, n]."""
    return op("mul", {"X": x, "Y": y}, {"x_num_col_dims": x_num_col_dims, "y_num_col_dims": y_num_col_dims})


def reshape(x, shape):
    """The same values in another shape; 0 keeps an axis, -1 takes what is left: [batch, 6] by [0, 2, -1] is [batch, 2, 3]."""
    return op("reshape2", {"X": x}, {"shape": list(shape)}, ["Out", "XShape"])[0]


def transpose(x, perm):
    """Axes in another order: [a, b, c] by the perm [0, 2, 1] is [a, c, b]."""
    return op("transpose2", {"X": x}, {"axis": list(perm)}, ["Out", "XShape"])[0]


def squeeze(input, axes):
    """Without axes of size 1: [batch, 1, 3] by the axes [1] is [batch, 3]."""
    return op("squeeze2", {"X": input}, {"axes": list(axes)}, ["Out", "XShape"])[0]


def unsqueeze(input, axes):
    """With new axes of size 1: [batch, 3] by the axes [1] is [batch, 1, 3]."""
    return op("unsqueeze2", {"X": input}, {"axes": _ints(axes)}, ["Out", "XShape"])[0]


expand_dims = unsqueeze


def slice(input, axes, starts, ends):
    """A part: input[starts:ends] along the axes."""
    return op("slice", {"Input": input}, {"axes": list(axes), "starts": list(starts), "ends": list(ends)})


def split(input, num_or_sections, dim=-1):
    """Equal parts, or parts of these sizes, along an axis; a list: [batch, 6] in 3 is three of [batch, 2]."""
    if isinstance(num_or_sections, int):
        count, attrs = num_or_sections, {"num": num_or_sections, "axis": dim}
    else:
        count, attrs = len(num_or_sections), {"sections": list(num_or_sections), "axis": dim}
    made = op("split", {"X": input}, attrs, {"Out": count})
    return list(made) if isinstance(made, tuple) else [made]


def stack(x, axis=0):
    """Variables of one shape along a new axis: n of [batch, a] become [n, batch, a], along axis 1 [batch, n, a]."""
    return op("stack", {"X": _list(x)}, {"axis": axis}, ["Y"])


def sums(input):
    """The sum of a list of variables of one shape, which it has."""
    return op("sum", {"X": _list(input)})


sum = sums


def topk(input, k):
    """(the k largest values of each row, their columns): both [batch, k] of [batch, n], the second int64."""
    return op("top_k", {"X": input}, {"k": k}, ["Out", "Indices"])


def gather(input, index):
    """Rows of `input` by number: of [n, dim], with an index [m] or [m, 1], [m, dim]."""
    return op("gather", {"X": input, "Index": index})


def one_hot(input, depth):
    """[batch, 1] classes as [batch, depth] floats."""
    return op("one_hot", {"X": input}, {"depth": depth})


def assign(input):
    """A copy, of the same shape and type."""
    return op("assign", {"X": input})


def fill_constant(shape, dtype, value):
    """One value everywhere in a new variable of this shape."""
    return op("fill_constant", {}, {"shape": list(shape), "dtype": _dtype(dtype), "value": float(value)})


def ones_like(x):
    """Ones in the shape and type of x."""
    return op("fill_any_like", {"X": x}, {"value": 1.0})


def _unary(type):
    def layer(x):
        return op(type, {"X": x})
    layer.__name__ = layer.__qualname__ = type
    layer.__doc__ = "%s of every value; the shape of x." % type
    return layer


def _elementwise(type):
    def layer(x, y, axis=-1, act=None):
        return _activate(op(type, {"X": x, "Y": y}, {"axis": axis}), act, type)
    layer.__name__ = layer.__qualname__ = type
    layer.__doc__ = ("%s of two variables, in the shape of x; the axes of y are those of x from `axis` on, by default the last "
                     "ones: [batch, n] takes [batch, n] and [n], and with axis=0 [batch]." % type)
    return layer


def _reduce(type):
    def layer(input, dim=None, keep_dim=False):
        everything = dim is None
        return op(type, {"X": input}, {"dim": [0] if everything else _ints(dim), "keep_dim": keep_dim,
                                       "reduce_all": everything})
    layer.__name__ = layer.__qualname__ = type
    layer.__doc__ = ("%s over the axes `dim`, which go, or stay with size 1 with keep_dim: [batch, n] by 1 is [batch]; by default over "
                     "all, [1]." % type)
    return layer


for _name in _UNARY:
    globals()[_name] = _unary(_name)
for _name in _ELEMENTWISE:
    globals()["elementwise_" + _name] = _elementwise("elementwise_" + _name)
for _name in _REDUCE:
    globals()["reduce_" + _name] = _reduce("reduce_" + _name)

# Numbers of VarType.Type.
_DTYPES = {"bool": 0, "int16": 1, "int32": 2, "int64": 3, "float16": 4, "float32": 5, "float64": 6, "uint8": 20, "int8": 21}


def _dtype_name(given):
    """"float32" for numpy.float32 and numpy.dtype("float32"), too."""
    if isinstance(given, str):
        return given
    import numpy as np
    try:
        return np.dtype(given).name
    except TypeError:
        raise ConfigError("a dtype is a name, for example \"float32\", not %r" % (given,)) from None


def _dtype(given):
    name = _dtype_name(given)
    if name not in _DTYPES:
        raise ConfigError('there is no dtype "%s"; there are %s' % (name, ", ".join(_DTYPES)))
    return _DTYPES[name]


def _list(given):
    return list(given) if isinstance(given, (list, tuple)) else [given]


def _ints(given):
    return [int(value) for value in _list(given)]


def _count(layer, argument, given):
    try:
        return operator.index(given)
    except TypeError:
        raise ConfigError("%s: %s has whole numbers, not %r" % (layer, argument, given)) from None


def _check(var, program, layer, argument):
    if not isinstance(var, Variable):
        raise ConfigError("%s: %s is a Variable, not %r" % (layer, argument, var))
    if var.program is not program:
        raise ConfigError('%s: "%s" is a variable of another program' % (layer, var.name))
    return var


def _program_of(inputs):
    for given in inputs.values():
        for var in _list(given):
            if isinstance(var, Variable):
                return var.program
    return default_main_program()


def _parameter(program, attr, default_name, shape, default_initializer, index=None):
    name = attr.name or default_name
    if attr.name and index is not None:
        name = "%s_%d" % (attr.name, index)
    if program._author.has(name):
        made = Variable(program, name)
        if list(made.shape) != list(shape):
            raise ConfigError('parameter "%s" is %s already, not %s' % (name, list(made.shape), list(shape)))
        return made
    program._author.add_parameter(name, shape, (attr.initializer or default_initializer).text, attr.trainable)
    if attr._rule():
        program._author.set_rule(name, attr._rule())
    return Variable(program, name)


def _activate(var, act, stem):
    if act is None:
        return var
    return op(act, {"X": var}, name=var.program.unique_name(stem + ".tmp"))


def _caller():
    """file:line of the first frame outside this package."""
    for frame in reversed(traceback.extract_stack(limit=8)):
        if frame.filename != __file__:
            return "%s:%d" % (frame.filename, frame.lineno)
    return ""
